// Keys of mixtures of experts.
#include "kernels/checks.h"
#include "src/model/architectures/architecture.h"

namespace llm {
namespace {

constexpr int kMaxFfnSize = 1 << 20;

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
  reader->Fail(CheckRouterRule(rule));
  config->experts.router = rule;
  for (LayerConfig& layer : config->layers) layer.experts = true;
}

}  // namespace llm
