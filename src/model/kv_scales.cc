// Hubs know several names for them: compressed-tensors' own, those that ModelOpt puts beside the
// projections, and an older one for both.
#include "src/model/kv_scales.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

constexpr char kKeyScales[] = "kv_cache.key_scales";
constexpr char kValueScales[] = "kv_cache.value_scales";
constexpr const char* kKeyNames[] = {"k_scale", "k_proj.k_scale", "kv_scale"};
constexpr const char* kValueNames[] = {"v_scale", "v_proj.v_scale", "kv_scale"};

bool IsScale(float scale) { return std::isfinite(scale) && scale > 0; }

absl::StatusOr<float> ReadNumber(const SafeTensor& tensor) {
  uint8_t bytes[4] = {};
  const bool one = tensor.size_bytes == SafeTypeBytes(tensor.type);
  if (one && tensor.type == SafeType::kF32) {
    LLM_RETURN_IF_ERROR(tensor.file->Read(tensor.offset, 4, bytes));
    float value;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }
  if (!one || (tensor.type != SafeType::kBF16 && tensor.type != SafeType::kF16)) {
    return absl::UnimplementedError("a scale of keys or values is one F32, F16 or BF16 number");
  }
  LLM_RETURN_IF_ERROR(tensor.file->Read(tensor.offset, 2, bytes));
  const uint16_t bits = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  return tensor.type == SafeType::kBF16 ? BF16ToF32(bits) : F16ToF32(bits);
}

// The first of the layer's names that is there.
absl::StatusOr<std::optional<float>> FindScale(const SafetensorsSet& set, int64_t layer,
                                               absl::Span<const char* const> names) {
  for (const char* name : names) {
    const auto found = set.tensors.find(absl::StrCat("model.layers.", layer, ".self_attn.", name));
    if (found == set.tensors.end()) continue;
    const SafeTensor& tensor = found->second;
    absl::StatusOr<float> scale = ReadNumber(tensor);
    if (scale.ok() && !IsScale(*scale)) {
      scale = absl::InvalidArgumentError(absl::StrCat("the scale is ", *scale));
    }
    if (!scale.ok()) {
      return At(absl::StrCat("tensor ", Printable(tensor.name), " of ", tensor.file->name()),
                scale.status());
    }
    return *scale;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<float>> FindScales(const SafetensorsSet& set, int64_t num_layers,
                                              absl::Span<const char* const> names) {
  std::vector<float> scales;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    LLM_ASSIGN_OR_RETURN(const std::optional<float> scale, FindScale(set, layer, names));
    if (scale.has_value()) scales.push_back(*scale);
    // All or none: a guess for a layer would be silently wrong.
    if (scales.empty() || scales.size() == static_cast<size_t>(layer) + 1) continue;
    const int64_t missing = scale.has_value() ? 0 : layer;
    return absl::NotFoundError(absl::StrCat("tensor model.layers.", missing, ".self_attn.",
                                            names[0], ": missing, other layers have one"));
  }
  return scales;
}

absl::StatusOr<std::vector<float>> ReadScales(const Metadata& metadata, const char* key,
                                              int num_layers) {
  if (!metadata.Has(key)) return std::vector<float>();
  LLM_ASSIGN_OR_RETURN(std::vector<float> scales, metadata.GetFloats(key));
  bool fit = scales.size() == static_cast<size_t>(num_layers);
  for (const float scale : scales) fit = fit && IsScale(scale);
  if (fit) return scales;
  return absl::InvalidArgumentError(
      absl::StrCat("key ", key, ": expected ", num_layers, " finite numbers above 0"));
}

}  // namespace

absl::Status TakeKvScales(int64_t num_layers, SafetensorsSet* set, GgufWriter* writer) {
  LLM_ASSIGN_OR_RETURN(const std::vector<float> keys, FindScales(*set, num_layers, kKeyNames));
  LLM_ASSIGN_OR_RETURN(const std::vector<float> values, FindScales(*set, num_layers, kValueNames));
  if (keys.size() != values.size()) {
    return absl::NotFoundError(absl::StrCat("tensor model.layers.0.self_attn.",
                                            keys.empty() ? "k_scale" : "v_scale",
                                            ": missing beside the other one"));
  }
  if (keys.empty()) return absl::OkStatus();
  writer->AddFloats(kKeyScales, keys);
  writer->AddFloats(kValueScales, values);
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const std::string prefix = absl::StrCat("model.layers.", layer, ".self_attn.");
    for (const char* name : kKeyNames) set->tensors.erase(prefix + name);
    for (const char* name : kValueNames) set->tensors.erase(prefix + name);
  }
  return absl::OkStatus();
}

absl::StatusOr<KvScales> ReadKvScales(const Metadata& metadata, int num_layers) {
  KvScales scales;
  LLM_ASSIGN_OR_RETURN(scales.keys, ReadScales(metadata, kKeyScales, num_layers));
  LLM_ASSIGN_OR_RETURN(scales.values, ReadScales(metadata, kValueScales, num_layers));
  if (scales.keys.empty() == scales.values.empty()) return scales;
  return absl::InvalidArgumentError(
      absl::StrCat("keys ", kKeyScales, " and ", kValueScales, ": one without the other"));
}

void MapKvCacheScheme(HubConfig* quantization) {
  if (!quantization->Has("kv_cache_scheme")) return;
  HubConfig scheme = quantization->Section("kv_cache_scheme");
  scheme.RequireNumber("num_bits", 8);
  scheme.RequireText("type", "float");
  scheme.RequireText("strategy", "tensor");
  scheme.RequireBool("symmetric", true);
  scheme.RequireBool("dynamic", false);
  for (const char* key : {"group_size", "observer", "observer_kwargs", "scale_dtype", "zp_dtype",
                          "block_structure", "actorder"}) {
    scheme.Harmless(key);  // how the scales were found, and parts of other strategies
  }
  quantization->Close(&scheme);
}

}  // namespace llm
