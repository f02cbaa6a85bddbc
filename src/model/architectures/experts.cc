// Keys of mixtures of experts.
#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "src/model/architectures/architecture.h"

namespace llm {
namespace {

constexpr int kMaxFfnSize = 1 << 20;

RouterScore ReadScore(ConfigReader* reader, RouterScore fallback) {
  const int function = reader->CountOr("expert_gating_func", 255, 0);
  if (function == 0) return fallback;
  if (function == 1) return RouterScore::kSoftmax;
  if (function != 2) {
    reader->Fail(absl::UnimplementedError(
        absl::StrCat("key ", reader->FullName("expert_gating_func"), ": ", function,
                     " is neither softmax (1) nor sigmoid (2)")));
  }
  return RouterScore::kSigmoid;
}

}  // namespace

void ReadExperts(ConfigReader* reader, RouterRule defaults, ModelConfig* config) {
  RouterRule rule = defaults;
  rule.num_experts = reader->CountOr("expert_count", kMaxExperts, 0);
  rule.experts_per_token = reader->CountOr("expert_used_count", kMaxExperts, 0);
  if (rule.num_experts == 0) return;
  rule.normalize = reader->BoolOr("expert_weights_norm", rule.normalize);
  rule.scale = reader->FloatOr("expert_weights_scale", 1.0f);
  config->experts.ffn_size =
      reader->SizeOr("expert_feed_forward_length", kMaxFfnSize, config->ffn_size);
  rule.num_groups = reader->SizeOr("expert_group_count", kMaxExperts, 1);
  rule.groups_per_token = reader->SizeOr("expert_group_used_count", kMaxExperts, rule.num_groups);
  rule.score = ReadScore(reader, rule.score);
  reader->Fail(CheckRouterRule(rule));
  config->experts.router = rule;
  config->experts.shared_ffn_size =
      reader->CountOr("expert_shared_count", kMaxExperts, 0) * config->experts.ffn_size;
  if (config->experts.shared_ffn_size > kMaxFfnSize) {
    reader->Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", reader->FullName("expert_shared_count"), ": too many")));
  }
  const int dense = reader->CountOr("leading_dense_block_count", config->num_layers, 0);
  for (int i = dense; i < config->num_layers; ++i) {
    config->layers[static_cast<size_t>(i)].experts = true;
  }
}

}  // namespace llm
