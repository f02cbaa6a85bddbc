// Sums over chunks and groups.
#include "src/engine/step_bytes.h"

#include <algorithm>
#include <cmath>

namespace llm {
namespace {

uint64_t ExpertBytes(const ByteModel& model, int64_t num_tokens) {
  if (model.num_experts == 0) return 0;
  const double missed = 1.0 - static_cast<double>(model.experts_per_token) / model.num_experts;
  const double read = model.num_experts * (1.0 - std::pow(missed, static_cast<double>(num_tokens)));
  return static_cast<uint64_t>(read * static_cast<double>(model.expert_bytes));
}

}  // namespace

StepBytes PredictBytes(const ByteModel& model, const StepPlan& plan) {
  StepBytes bytes;
  bytes.weights_read =
      model.layer_weight_bytes + static_cast<uint64_t>(plan.num_tokens) * model.embedding_row_bytes;
  bytes.weights_read += ExpertBytes(model, plan.num_tokens);
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
