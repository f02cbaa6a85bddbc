// config.json in the vocabulary of GGUF metadata.
#include "tests/golden/hf_config.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

using Json = nlohmann::json;

class ConfigWriter {
 public:
  ConfigWriter(const Json& config, FakeMetadata* metadata)
      : config_(config), metadata_(*metadata), architecture_(HfArchitecture(config)) {}

  void Write() {
    metadata_.Set("general.architecture", architecture_);
    WriteSizes();
    WriteRope();
    WriteExperts();
    WriteLatent();
    WriteGemma();
  }

 private:
  bool Has(const char* from) const { return config_.contains(from) && !config_[from].is_null(); }
  void Set(const char* key, FakeMetadata::Value value) {
    metadata_.Set(absl::StrCat(architecture_, ".", key), std::move(value));
  }
  void Int(const char* key, const char* from) {
    if (Has(from)) Set(key, config_[from].get<int64_t>());
  }
  void Float(const char* key, const char* from) {
    if (Has(from)) Set(key, config_[from].get<double>());
  }

  void WriteSizes();
  void WriteRope();
  void WriteExperts();
  void WriteLatent();
  void WriteGemma();

  const Json& config_;
  FakeMetadata& metadata_;
  const std::string architecture_;
};

void ConfigWriter::WriteSizes() {
  Int("block_count", "num_hidden_layers");
  Int("context_length", "max_position_embeddings");
  Int("embedding_length", "hidden_size");
  Int("feed_forward_length", "intermediate_size");
  Int("attention.head_count", "num_attention_heads");
  Int("attention.head_count_kv", "num_key_value_heads");
  Int("attention.key_length", "head_dim");
  Int("attention.value_length", "head_dim");
  Float("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  Float("rope.freq_base", "rope_theta");
  if (architecture_ == "llama") Set("rope.halves", true);
  const bool windows = !config_.contains("use_sliding_window") || config_["use_sliding_window"];
  if (windows) Int("attention.sliding_window", "sliding_window");
}

void ConfigWriter::WriteRope() {
  if (!config_.contains("rope_scaling") || !config_["rope_scaling"].is_object()) return;
  const Json& scaling = config_["rope_scaling"];
  const std::string type = scaling["rope_type"];
  Set("rope.scaling.type", type);
  const std::map<std::string, const char*> floats = {
      {"factor", "rope.scaling.factor"},
      {"low_freq_factor", "rope.scaling.low_freq_factor"},
      {"high_freq_factor", "rope.scaling.high_freq_factor"},
      {"beta_fast", "rope.scaling.yarn_beta_fast"},
      {"beta_slow", "rope.scaling.yarn_beta_slow"}};
  for (const auto& [from, key] : floats) {
    if (scaling.contains(from)) Set(key, scaling[from].get<double>());
  }
  if (scaling.contains("original_max_position_embeddings")) {
    Set("rope.scaling.original_context_length",
        scaling["original_max_position_embeddings"].get<int64_t>());
  }
  if (scaling.contains("truncate")) {
    Set("rope.scaling.yarn_truncate", scaling["truncate"].get<bool>());
  }
  if (scaling.contains("mscale_all_dim")) {  // equal to mscale in all of the models
    Set("rope.scaling.yarn_log_multiplier", 0.1 * scaling["mscale_all_dim"].get<double>());
  }
}

void ConfigWriter::WriteExperts() {
  for (const char* from : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    Int("expert_count", from);
  }
  Int("expert_used_count", "num_experts_per_tok");
  Int("expert_feed_forward_length", "moe_intermediate_size");
  if (architecture_ == "gpt-oss") Int("expert_feed_forward_length", "intermediate_size");
  Float("expert_swiglu_limit", "swiglu_limit");
  if (Has("norm_topk_prob")) Set("expert_weights_norm", config_["norm_topk_prob"].get<bool>());
  Int("expert_shared_count", "n_shared_experts");
  Float("expert_weights_scale", "routed_scaling_factor");
  Int("leading_dense_block_count", "first_k_dense_replace");
  if (!Has("scoring_func")) return;
  Set("expert_gating_func", int64_t{config_["scoring_func"] == "sigmoid" ? 2 : 1});
  if (config_["topk_method"] == "greedy") return;
  Int("expert_group_count", "n_group");
  Int("expert_group_used_count", "topk_group");
}

void ConfigWriter::WriteLatent() {
  if (!Has("kv_lora_rank")) return;
  const int64_t rank = config_["kv_lora_rank"];
  const int64_t rope = config_["qk_rope_head_dim"];
  Int("attention.q_lora_rank", "q_lora_rank");
  Set("attention.kv_lora_rank", rank);
  Set("attention.head_count_kv", int64_t{1});
  Set("attention.key_length", rank + rope);
  Set("attention.value_length", rank);
  Set("attention.key_length_mla", config_["qk_nope_head_dim"].get<int64_t>() + rope);
  Int("attention.value_length_mla", "v_head_dim");
  Set("rope.dimension_count", rope);
}

void ConfigWriter::WriteGemma() {
  Float("rope.freq_base_swa", "rope_local_base_freq");
  Int("attention.sliding_window_pattern", "sliding_window_pattern");
  Float("attn_logit_softcapping", "attn_logit_softcapping");
  Float("final_logit_softcapping", "final_logit_softcapping");
  if (!Has("query_pre_attn_scalar")) return;
  Set("attention.scale", 1.0 / std::sqrt(config_["query_pre_attn_scalar"].get<double>()));
}

}  // namespace

std::string HfArchitecture(const Json& config) {
  const std::map<std::string, std::string> names = {
      {"mistral", "llama"},        {"mixtral", "llama"},   {"qwen3_moe", "qwen3moe"},
      {"gemma3_text", "gemma3"},   {"gpt_oss", "gpt-oss"}, {"deepseek_v2", "deepseek2"},
      {"deepseek_v3", "deepseek2"}};
  const std::string type = config["model_type"];
  const auto found = names.find(type);
  return found != names.end() ? found->second : type;
}

void WriteHfConfig(const Json& config, FakeMetadata* metadata) {
  ConfigWriter(config, metadata).Write();
}

}  // namespace llm
