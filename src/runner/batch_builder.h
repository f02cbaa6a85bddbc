// Flattens a step plan into the arrays of a Batch, in memory that was planned for the largest step.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/cache/kv_groups.h"
#include "src/model/arena.h"
#include "src/model/batch.h"
#include "src/scheduler/step_plan.h"

namespace llm {

struct BatchShape {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_logit_rows = 0;  // those of hidden states included
  int max_context = 0;
  int block_size = 16;
  std::vector<KvGroupSpec> groups;
  std::vector<int> num_blocks;  // [groups]
};

// A shape that a step of decodes is filled up to: rows behind those of the plan that see one key,
// store nothing, and give logits that nobody reads.
struct BatchPadding {
  int rows = 0;            // those of the plan included
  int64_t max_blocks = 0;  // of each block table

  bool operator==(const BatchPadding&) const = default;
};

class BatchBuilder {
 public:
  // Bytes of all arrays of a step, each at a multiple of 64, where a step copies them to a device.
  static size_t ArrayBytes(const BatchShape& shape);

  // Takes the arrays from `arena`, whose memory outlives the builder.
  BatchBuilder(BatchShape shape, Arena* arena);

  // The spans are valid until the next Build, which puts its arrays in the same places. INTERNAL,
  // with the numbers, for a plan that is beyond the shape, names tokens that a sequence does not
  // have, or needs a block that its table does not hold: a bug of the scheduler's must not reach
  // memory.
  absl::StatusOr<Batch> Build(const StepPlan& plan) { return Build(plan, nullptr); }
  // INTERNAL, also, for a plan that is not of decodes alone, or larger than the padding. `pending`,
  // [chunks]: ids, as PendingTokens has them, of tokens that sequences do not have yet.
  absl::StatusOr<Batch> Build(const StepPlan& plan, const BatchPadding* padding,
                              absl::Span<const int32_t> pending = {});

  // Does `work` while every context of the batch is as long as its block tables have room for:
  // launches that are recorded then serve all batches of this shape.
  absl::Status WithLongestContexts(const Batch& batch, absl::FunctionRef<absl::Status()> work);

 private:
  struct Group {
    int32_t* slot_mapping = nullptr;  // [max_tokens]
    int32_t* block_table = nullptr;   // [max_sequences, max_blocks], of the step's longest
  };

  absl::Status Check(const StepPlan& plan, size_t num_pending) const;
  absl::Status CheckPadding(const StepPlan& plan, const BatchPadding& padding) const;
  void AddRows(int32_t begin, int32_t end, int64_t max_blocks);
  int64_t LongestTable(const StepPlan& plan) const;
  absl::Status FillGroup(size_t group, const StepPlan& plan, int64_t max_blocks);
  absl::Status FillRow(size_t group, const ScheduledChunk& chunk, int32_t* row,
                       int32_t* slots) const;

  const BatchShape shape_;
  int32_t* token_ids_;
  int32_t* positions_;
  int32_t* query_start_;
  int32_t* context_lens_;
  int32_t* rope_variants_;
  int32_t* logit_rows_;  // [max_logit_rows]: those of logits, then those of hidden states
  std::vector<Group> groups_;
  std::vector<int32_t> saved_contexts_;    // [sequences]
  std::vector<GroupBatch> group_batches_;  // what the batch's span points to
};

}  // namespace llm
