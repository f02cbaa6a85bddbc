// Rows for nobody: their key is one that is stored, so that what they compute is finite.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/kv_layout.h"
#include "src/base/math.h"
#include "src/runner/batch_builder.h"

namespace llm {

absl::Status BatchBuilder::CheckPadding(const StepPlan& plan, const BatchPadding& padding) const {
  const auto num_rows = static_cast<int64_t>(plan.chunks.size());
  const int64_t max_blocks = CeilDiv<int64_t>(shape_.max_context, shape_.block_size);
  const int most = std::min({shape_.max_sequences, shape_.max_tokens, shape_.max_logit_rows});
  const bool decodes = std::all_of(plan.chunks.begin(), plan.chunks.end(), IsDecode);
  if (decodes && num_rows > 0 && num_rows <= padding.rows && padding.rows <= most &&
      LongestTable(plan) <= padding.max_blocks && padding.max_blocks <= max_blocks) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("batch: ", num_rows, " rows cannot be filled up to ",
                                          padding.rows, " of ", padding.max_blocks, " blocks"));
}

void BatchBuilder::AddRows(int32_t begin, int32_t end, int64_t max_blocks) {
  for (int32_t row = begin; row < end; ++row) {
    token_ids_[row] = token_ids_[0];
    positions_[row] = 0;
    query_start_[row + 1] = row + 1;
    context_lens_[row] = 1;
    rope_variants_[row] = rope_variants_[0];
    logit_rows_[row] = row;
    for (const Group& group : groups_) {
      group.slot_mapping[row] = kNoSlot;
      group.block_table[row * max_blocks] = group.slot_mapping[0] / shape_.block_size;
    }
  }
}

absl::Status BatchBuilder::WithLongestContexts(const Batch& batch,
                                               absl::FunctionRef<absl::Status()> work) {
  const size_t num_rows = batch.context_lens.size();
  saved_contexts_.assign(batch.context_lens.begin(), batch.context_lens.end());
  int64_t longest = shape_.max_context;
  for (size_t group = 0; group < groups_.size(); ++group) {
    const int64_t max_blocks = batch.groups[group].max_blocks;
    longest = std::min(longest, max_blocks * shape_.block_size);
    for (size_t row = 0; row < num_rows; ++row) {
      // What lies behind a row's own blocks is read by nobody, but an op may look at all there are.
      const int64_t used = CeilDiv<int64_t>(saved_contexts_[row], shape_.block_size);
      int32_t* table = groups_[group].block_table + static_cast<int64_t>(row) * max_blocks;
      std::fill(table + used, table + max_blocks, 0);
    }
  }
  std::fill_n(context_lens_, num_rows, static_cast<int32_t>(longest));
  const absl::Cleanup restore = [this] {
    std::copy(saved_contexts_.begin(), saved_contexts_.end(), context_lens_);
  };
  return work();
}

}  // namespace llm
