// quantization_config: which scheme, and what its tensors do not show. A key is used, harmless or
// refused by name.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
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
  extras->has_zero_points = !config->BoolOr("sym", true);
  config->RequireBool("lm_head", false);
  const std::string format = config->TextOr("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2") {
    config->Refuse("checkpoint_format", absl::StrCat(Printable(format), " is not supported"));
  }
  extras->zero_point_bias = format == "gptq" ? 1 : 0;
  extras->needs_input_groups = config->BoolOr("desc_act", false);
  for (const char* key : {"group_size", "damp_percent", "damp_auto_increment",
                          "model_file_base_name", "model_name_or_path", "static_groups",
                          "true_sequential", "dataset", "meta", "pack_dtype"}) {
    config->Harmless(key);  // the tensors show groups
  }
}

void MapAwq(HubConfig* config, HubExtras* extras) {
  extras->quantization = HubQuantization::kAwq;
  if (config->Int("bits") != 4) config->Refuse("bits", "only 4 is supported");
  extras->quantized_bits = 4;
  const std::string version = config->TextOr("version", "gemm");
  if (absl::AsciiStrToLower(version) != "gemm") {
    config->Refuse("version", absl::StrCat(Printable(version), " is not supported, only gemm"));
  }
  config->RequireBool("zero_point", true);
  extras->has_zero_points = true;
  for (const char* key : {"group_size", "modules_to_not_convert", "backend", "do_fuse",
                          "fuse_max_seq_len", "modules_to_fuse", "exllama_config"}) {
    config->Harmless(key);  // a tensor says itself what it is
  }
}

// [rows, columns] of weights that share a scale.
void MapBlocks(HubConfig* config, const char* key, HubExtras* extras) {
  constexpr int64_t kColumns = 64;  // of a block of the format
  const std::vector<float> sizes = config->Floats(key);
  if (sizes.size() != 2 || !(sizes[0] >= 1) || !(sizes[1] >= 1) || sizes[0] > 1e6f ||
      sizes[1] > 1e6f) {
    return config->RefuseValue(key, "is no pair of sizes");
  }
  extras->block_rows = static_cast<int64_t>(sizes[0]);
  extras->block_cols = static_cast<int64_t>(sizes[1]);
  if (extras->block_cols % kColumns != 0) {
    config->Refuse(key, absl::StrCat("only multiples of ", kColumns, " columns are supported"));
  }
}

// DeepSeek's, with blocks, and one scale for a tensor without.
void MapF8(HubConfig* config, HubExtras* extras) {
  extras->quantization = HubQuantization::kF8;
  config->RequireText("fmt", "e4m3");
  if (config->Has("weight_block_size")) MapBlocks(config, "weight_block_size", extras);
  for (const char* key :
       {"activation_scheme", "modules_to_not_convert", "ignored_layers", "scale_fmt"}) {
    config->Harmless(key);  // how activations are held is the engine's choice
  }
}

void MapStrategy(HubConfig* weights, HubExtras* extras) {
  if (extras->quantization != HubQuantization::kF8) {
    for (const char* key : {"strategy", "block_structure"}) weights->Harmless(key);
    return;
  }
  const std::string strategy = weights->TextOr("strategy", "");
  if (strategy == "block") return MapBlocks(weights, "block_structure", extras);
  weights->Harmless("block_structure");
  if (strategy != "tensor" && strategy != "channel") {
    weights->Refuse("strategy", absl::StrCat(Printable(strategy), " is not supported"));
  }
}

struct Scheme {
  const char* format;
  HubQuantization quantization;
  bool is_float;
  int64_t bits;
  int64_t other_bits;
};
constexpr Scheme kSchemes[] = {
    {"pack-quantized", HubQuantization::kPacked, false, 4, 8},
    {"int-quantized", HubQuantization::kInt8, false, 8, 8},
    {"float-quantized", HubQuantization::kF8, true, 8, 8},
    {"mxfp4-pack-quantized", HubQuantization::kMxfp4, true, 4, 4},
    {"mxfp8-quantized", HubQuantization::kMxfp8, true, 8, 8},
    {"nvfp4-pack-quantized", HubQuantization::kNvfp4, true, 4, 4},
};

// "group" has groups of inputs that are not neighbours; the other orders leave no trace. Older
// files say true for it.
void MapActOrder(const Scheme& scheme, HubConfig* weights, HubExtras* extras) {
  constexpr char kKey[] = "actorder";
  const bool flag = weights->Is(kKey, JsonType::kBool);
  const std::string order = flag ? (weights->BoolOr(kKey, false) ? "group" : "weight")
                                 : absl::AsciiStrToLower(weights->TextOr(kKey, "weight"));
  if (order == "weight" || order == "static") return;
  if (order != "group" && order != "dynamic") {
    return weights->Refuse(kKey, absl::StrCat(Printable(order), " is not supported"));
  }
  if (scheme.is_float) return weights->Refuse(kKey, "groups of floats are supported in order only");
  extras->needs_input_groups = true;
}

void MapWeights(const Scheme& scheme, HubConfig* weights, HubExtras* extras) {
  const int64_t bits = weights->Int("num_bits");
  weights->RequireText("type", scheme.is_float ? "float" : "int");
  weights->RequireBool("dynamic", false);
  const bool symmetric = weights->BoolOr("symmetric", true);
  if (!symmetric && scheme.quantization != HubQuantization::kPacked) {
    weights->Refuse("symmetric", "only true is supported");
  }
  extras->has_zero_points = !symmetric;
  if (bits != scheme.bits && bits != scheme.other_bits) {
    weights->Refuse("num_bits", absl::StrCat(bits, " is not supported"));
  }
  extras->quantized_bits = static_cast<int>(bits == 8 ? 8 : 4);
  MapStrategy(weights, extras);
  MapActOrder(scheme, weights, extras);
  for (const char* key : {"group_size", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"}) {
    weights->Harmless(key);  // the tensors show groups
  }
}

// Two weights of four, of full width.
void MapSparsity(HubConfig* config, HubExtras* extras) {
  HubConfig sparsity = config->Section("sparsity_config");
  const std::string format = sparsity.TextOr("format", "dense");
  if (format == "sparse-24-bitmask") {
    extras->quantization = HubQuantization::kSparse24;
    if (config->Has("config_groups")) {
      config->Refuse("config_groups", "low bits beside sparse-24-bitmask are not supported");
    }
  } else if (format != "dense") {
    sparsity.Refuse("format", absl::StrCat(Printable(format), " is not supported"));
  }
  for (const char* key : {"global_sparsity", "ignore", "registry_requires_subclass",
                          "sparsity_structure", "targets"}) {
    sparsity.Harmless(key);  // a tensor says itself what it is
  }
  config->Close(&sparsity);
}

void MapGroups(HubConfig* config, HubExtras* extras) {
  const std::string format = config->TextOr("format", "");
  const Scheme* scheme = nullptr;
  for (const Scheme& row : kSchemes) {
    if (format == row.format) scheme = &row;
  }
  if (scheme == nullptr) {
    return config->Refuse("format", absl::StrCat(Printable(format), " is not supported"));
  }
  extras->quantization = scheme->quantization;
  HubConfig groups = config->Section("config_groups");
  HubConfig group = groups.Section("group_0");
  group.Harmless("targets");            // a tensor says itself what it is
  group.Harmless("input_activations");  // how activations are held is the engine's choice
  group.Harmless("format");
  HubConfig weights = group.Section("weights");
  MapWeights(*scheme, &weights, extras);
  group.Close(&weights);
  groups.Close(&group);
  config->Close(&groups);
}

void MapCompressedTensors(HubConfig* config, HubExtras* extras) {
  config->RequireText("quantization_status", "compressed");
  for (const char* key : {"global_compression_ratio", "ignore", "version"}) config->Harmless(key);
  HubConfig transforms = config->Section("transform_config");
  config->Close(&transforms);
  if (config->Has("sparsity_config")) MapSparsity(config, extras);
  if (extras->quantization == HubQuantization::kNone) MapGroups(config, extras);
}

struct Method {
  const char* name;
  void (*map)(HubConfig* config, HubExtras* extras);
};
constexpr Method kMethods[] = {{"gptq", MapGptq},
                               {"awq", MapAwq},
                               {"fp8", MapF8},
                               {"compressed-tensors", MapCompressedTensors}};

}  // namespace

void MapQuantization(HubConfig* config, HubExtras* extras) {
  if (!config->Has("quantization_config")) return;
  HubConfig quantization = config->Section("quantization_config");
  const std::string name = quantization.TextOr("quant_method", "");
  const Method* method = std::find_if(std::begin(kMethods), std::end(kMethods),
                                      [&](const Method& row) { return name == row.name; });
  if (method == std::end(kMethods)) {
    quantization.Refuse("quant_method", absl::StrCat(Printable(name), " is not supported"));
  } else {
    method->map(&quantization, extras);
  }
  MapKvCacheScheme(&quantization);
  config->Close(&quantization);
}

}  // namespace llm
