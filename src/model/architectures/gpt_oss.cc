// gpt-oss: experts with biases and a clamped SwiGLU, windows on every other layer, a sink for each
// head, yarn without truncation. OpenAI, 2025.
#include "src/model/architectures/architecture.h"
#include "src/model/architectures/hub_models.h"

namespace llm {

void ConfigureGptOss(ConfigReader* reader, ModelConfig* config) {
  ReadSizes(reader, config);
  config->names.ffn_norm = "post_attention_norm";
  config->rope_pairs = RopePairs::kHalves;
  config->may_have_biases = true;
  config->attention_sinks = true;
  config->activation = GateActivation::kClampedSwiglu;
  config->activation_limit = reader->FloatOr("expert_swiglu_limit", 7.0f);
  // The softmax over the chosen experts only is that over all, normalised.
  ReadExperts(reader, {.normalize = true}, config);

  // The models were trained without truncation, and GGUF has no key for it.
  const float base = reader->FloatOr("rope.freq_base", 150000.0f);
  const RopeScaling scaling = ReadRopeScaling(reader, /*truncate_yarn=*/false);
  config->ropes = {MakeRope(config->rope_dim, base, scaling)};
  ReadWindows(reader, 2, config);
  reader->Harmless("vocab_size");
}

namespace {

constexpr HubTensor kTensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"},
    {"model.layers.{}.mlp.router", "blk.{}.ffn_gate_inp"},
    // Outputs alternate between gate and up.
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight",
     HubForm::kTransposedEven},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_up_exps.weight",
     HubForm::kTransposedOdd},
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", HubForm::kTransposed},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_gate_exps.bias", HubForm::kEven},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_up_exps.bias", HubForm::kOdd},
    {"model.layers.{}.mlp.experts.down_proj_bias", "blk.{}.ffn_down_exps.bias"},
    {"model.layers.{}.mlp.experts.gate_up_proj_blocks", "blk.{}.ffn_gate_exps.weight",
     HubForm::kMxfp4Even},
    {"model.layers.{}.mlp.experts.gate_up_proj_blocks", "blk.{}.ffn_up_exps.weight",
     HubForm::kMxfp4Odd},
    {"model.layers.{}.mlp.experts.down_proj_blocks", "blk.{}.ffn_down_exps.weight",
     HubForm::kMxfp4},
    {"model.layers.{}.mlp.experts.gate_up_proj_scales", nullptr, HubForm::kUnused},
    {"model.layers.{}.mlp.experts.down_proj_scales", nullptr, HubForm::kUnused},
};

constexpr HubKey kKeys[] = {
    {"sliding_window", "attention.sliding_window", HubValue::kInt},
    {"num_local_experts", "expert_count", HubValue::kInt},
    {"num_experts_per_tok", "expert_used_count", HubValue::kInt},
    {"swiglu_limit", "expert_swiglu_limit", HubValue::kFloat},
};

constexpr const char* kHarmless[] = {"initial_context_length", "output_router_logits",
                                     "router_aux_loss_coef"};

void Map(HubConfig* config, HubExtras* extras) {
  config->RequireText("hidden_act", "silu");
  config->RequireBool("attention_bias", true);
  config->RequireNumber("swiglu_alpha", 1.702);
  config->RequireNumber("experts_per_token",
                        static_cast<double>(config->Int("num_experts_per_tok")));
  extras->Set("expert_feed_forward_length", "intermediate_size", config->Int("intermediate_size"));
  extras->biases.insert({"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_inp",
                         "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"});
  HubConfig quantization = config->Section("quantization_config");
  quantization.RequireText("quant_method", "mxfp4");
  quantization.Harmless("modules_to_not_convert");  // each tensor says what it is
  config->Close(&quantization);
  MapLayerTypes(config, extras);
  MapRope(config, extras);
}

}  // namespace

const HubModel kHubGptOss = {.model_type = "gpt_oss",
                             .architecture = "gpt-oss",
                             .keys = kKeys,
                             .harmless = kHarmless,
                             .tensors = kTensors,
                             .own_quantization = true,
                             .map = Map};

}  // namespace llm
