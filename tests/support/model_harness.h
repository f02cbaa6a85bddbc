// A model and a runner with blocks handed out by hand: for tests below the engine.
#pragma once

#include <memory>
#include <vector>

#include "kernels/kernel_table.h"
#include "src/base/thread_pool.h"
#include "src/loader/weight_source.h"
#include "src/model/model.h"
#include "src/runner/model_runner.h"

namespace llm {

struct HarnessOptions {
  const KernelTable* kernels = nullptr;
  int num_threads = 1;
  DType kv_dtype = DType::kF32;
  bool float_activations = true;
  bool batch_invariant = true;
  int max_step_tokens = 256;
  int max_sequences = 4;
  int max_logit_rows = 256;
  int max_context = 256;
  int num_blocks = 64;  // of each group
  bool graphs = true;
};

// The backend that INLAY_BACKEND names, else the fastest at hand.
const KernelTable* BackendUnderTest();

class ModelHarness {
 public:
  static absl::StatusOr<std::unique_ptr<ModelHarness>> Create(const WeightSource& source,
                                                              const HarnessOptions& options);

  const Model& model() const { return *model_; }
  ModelRunner& runner() { return *runner_; }
  const Allocator& allocator() const { return allocator_; }

  // A sequence with blocks for `max_tokens` in every group, scattered over the pool. REQUIRES:
  // enough blocks are left.
  std::unique_ptr<Sequence> NewSequence(std::vector<int32_t> tokens, int max_tokens);
  BlockId NewBlock(int group);
  // All blocks are free again.
  void Reset();

  // Computes the chunks in one step and returns the logits, row after row.
  absl::StatusOr<std::vector<float>> Run(const std::vector<ScheduledChunk>& chunks,
                                         const std::vector<BlockCopy>& copies = {});
  // Logits of all tokens, computed in chunks of at most `chunk_size`.
  absl::StatusOr<std::vector<float>> LogitsOfAll(Sequence* sequence, int chunk_size);
  // Of the last of these tokens, computed in one step while all blocks are free.
  absl::StatusOr<std::vector<float>> LastLogits(const std::vector<int32_t>& tokens);

 private:
  ModelHarness() = default;

  HarnessOptions options_;
  Allocator allocator_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelRunner> runner_;
  std::vector<std::vector<BlockId>> free_blocks_;  // [kv_groups]
};

}  // namespace llm
