// quantization_config: the schemes whose weights are blocks that GGUF has as well, to the bit.
#include "absl/strings/str_cat.h"
#include "src/loader/gguf_types.h"
#include "src/model/hub_model.h"
#include "src/model/kv_scales.h"

namespace llm {
namespace {

void MapGptq(HubConfig* config, HubExtras* extras) {
  extras->quantization = HubQuantization::kGptq;
  const int64_t bits = config->Int("bits");
  if (bits != 4 && bits != 8) config->Refuse("bits", "only 4 and 8 are supported");
  extras->quantized_bits = bits == 8 ? 8 : 4;
  config->RequireBool("sym", true);
  config->RequireBool("desc_act", false);
  config->RequireBool("lm_head", false);
  const std::string format = config->TextOr("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2") {
    config->Refuse("checkpoint_format", absl::StrCat(Printable(format), " is not supported"));
  }
  extras->zero_point_bias = format == "gptq" ? 1 : 0;
  for (const char* key : {"group_size", "damp_percent", "damp_auto_increment",
                          "model_file_base_name", "model_name_or_path", "static_groups",
                          "true_sequential", "dataset", "meta", "pack_dtype"}) {
    config->Harmless(key);  // the tensors show groups
  }
}

void MapScheme(HubConfig* weights, HubExtras* extras) {
  const int64_t bits = weights->Int("num_bits");
  const bool is_float = extras->quantization == HubQuantization::kMxfp4;
  weights->RequireText("type", is_float ? "float" : "int");
  weights->RequireBool("symmetric", true);
  weights->RequireBool("dynamic", false);
  const bool fits = extras->quantization == HubQuantization::kPacked ? bits == 4 || bits == 8
                    : is_float                                       ? bits == 4
                                                                     : bits == 8;
  if (!fits) weights->Refuse("num_bits", absl::StrCat(bits, " is not supported"));
  extras->quantized_bits = static_cast<int>(bits == 8 ? 8 : 4);
  for (const char* key : {"group_size", "strategy", "observer", "observer_kwargs", "scale_dtype",
                          "zp_dtype", "block_structure", "actorder"}) {
    weights->Harmless(key);  // the tensors show groups and their order
  }
}

void MapCompressedTensors(HubConfig* config, HubExtras* extras) {
  const std::string format = config->TextOr("format", "");
  if (format == "pack-quantized") {
    extras->quantization = HubQuantization::kPacked;
  } else if (format == "int-quantized") {
    extras->quantization = HubQuantization::kInt8;
  } else if (format == "mxfp4-pack-quantized") {
    extras->quantization = HubQuantization::kMxfp4;
  } else {
    return config->Refuse("format", absl::StrCat(Printable(format), " is not supported"));
  }
  config->RequireText("quantization_status", "compressed");
  for (const char* key : {"global_compression_ratio", "ignore", "version"}) config->Harmless(key);
  HubConfig groups = config->Section("config_groups");
  HubConfig group = groups.Section("group_0");
  group.Harmless("targets");            // a tensor says itself what it is
  group.Harmless("input_activations");  // how activations are held is the engine's choice
  group.Harmless("format");
  HubConfig weights = group.Section("weights");
  MapScheme(&weights, extras);
  group.Close(&weights);
  groups.Close(&group);
  config->Close(&groups);
}

}  // namespace

void MapQuantization(HubConfig* config, HubExtras* extras) {
  if (!config->Has("quantization_config")) return;
  HubConfig quantization = config->Section("quantization_config");
  const std::string method = quantization.TextOr("quant_method", "");
  if (method == "gptq") {
    MapGptq(&quantization, extras);
  } else if (method == "compressed-tensors") {
    MapCompressedTensors(&quantization, extras);
  } else {
    quantization.Refuse("quant_method", absl::StrCat(Printable(method), " is not supported"));
  }
  MapKvCacheScheme(&quantization);
  config->Close(&quantization);
}

}  // namespace llm
