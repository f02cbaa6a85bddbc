// Sums over chunks and groups.
#include "src/engine/step_bytes.h"

#include <algorithm>

namespace llm {

StepBytes PredictBytes(const ByteModel& model, const StepPlan& plan) {
  StepBytes bytes;
  bytes.weights_read =
      model.layer_weight_bytes + static_cast<uint64_t>(plan.num_tokens) * model.embedding_row_bytes;
  bool wants_logits = false;
  for (const ScheduledChunk& chunk : plan.chunks) {
    wants_logits |= chunk.num_logits > 0;
    const int64_t context = int64_t{chunk.begin} + chunk.length;
    for (const ByteModel::Group& group : model.groups) {
      const int64_t seen =
          group.window == 0 ? context : std::min(context, int64_t{group.window} + chunk.length - 1);
      bytes.kv_read += static_cast<uint64_t>(seen) * group.token_bytes;
      bytes.kv_written += static_cast<uint64_t>(chunk.length) * group.token_bytes;
    }
  }
  if (wants_logits) bytes.weights_read += model.head_bytes;
  for (const BlockCopy& copy : plan.block_copies) {
    const size_t group = static_cast<size_t>(copy.group);
    if (group >= model.groups.size()) continue;
    const uint64_t copied = static_cast<uint64_t>(copy.tokens) * model.groups[group].token_bytes;
    bytes.kv_read += copied;
    bytes.kv_written += copied;
  }
  return bytes;
}

}  // namespace llm
