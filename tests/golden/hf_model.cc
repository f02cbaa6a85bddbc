// What conversion changes: names; 1 is added to norms (Gemma); experts become one tensor; gpt-oss's
// experts are transposed and its gates parted from its ups; kv_b (DeepSeek) is parted and half of
// it transposed. Rows of q and k stay as they are, which the metadata says.
#include "tests/golden/hf_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tests/golden/hf_config.h"

namespace llm {
namespace {

using Json = nlohmann::json;

struct HfTensor {
  WeightFormat format;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;

  size_t element_bytes() const { return format == WeightFormat::kF32 ? 4 : 2; }
};

std::string GgufName(const std::string& name, const std::string& architecture) {
  if (name == "lm_head.weight") return "output.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  const bool gemma = absl::StartsWith(architecture, "gemma");
  const bool gpt_oss = architecture == "gpt-oss";
  return absl::StrReplaceAll(
      name, {{"model.embed_tokens", "token_embd"},
             {"model.layers.", "blk."},
             {"input_layernorm", "attn_norm"},
             {"post_attention_layernorm", gemma || gpt_oss ? "post_attention_norm" : "ffn_norm"},
             {"pre_feedforward_layernorm", "ffn_norm"},
             {"post_feedforward_layernorm", "post_ffw_norm"},
             {"mlp.gate_proj", "ffn_gate"},
             {"mlp.up_proj", "ffn_up"},
             {"mlp.gate_up_proj", "ffn_up"},
             {"mlp.down_proj", "ffn_down"},
             {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
             {"mlp.gate.weight", "ffn_gate_inp.weight"},
             {"mlp.router", "ffn_gate_inp"},
             {"block_sparse_moe.gate", "ffn_gate_inp"},
             {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
             {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
             {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
             {"self_attn.qkv_proj", "attn_qkv"},
             {"self_attn.q_proj", "attn_q"},
             {"self_attn.k_proj", "attn_k"},
             {"self_attn.v_proj", "attn_v"},
             {"self_attn.o_proj", "attn_output"},
             {"self_attn.q_norm", "attn_q_norm"},
             {"self_attn.k_norm", "attn_k_norm"},
             {"self_attn.sinks", "attn_sinks.weight"},
             {"self_attn.q_a_proj", "attn_q_a"},
             {"self_attn.q_b_proj", "attn_q_b"},
             {"self_attn.q_a_layernorm", "attn_q_a_norm"},
             {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
             {"self_attn.kv_a_layernorm", "attn_kv_a_norm"}});
}

// "blk.0.ffn_up_exps.weight" of "model.layers.0.mlp.experts.3.up_proj.weight"; empty for others.
std::string ExpertName(const std::string& name) {
  const size_t at = name.find(".experts.");
  if (at == std::string::npos || !std::isdigit(name[at + 9])) return "";
  const std::string layer = name.substr(0, name.find('.', std::strlen("model.layers.")));
  std::string stem = "ffn_down_exps";
  if (absl::StrContains(name, "gate_proj") || absl::StrContains(name, ".w1.")) {
    stem = "ffn_gate_exps";
  }
  if (absl::StrContains(name, "up_proj") || absl::StrContains(name, ".w3.")) stem = "ffn_up_exps";
  return absl::StrCat(absl::StrReplaceAll(layer, {{"model.layers.", "blk."}}), ".", stem,
                      ".weight");
}

// [parts, rows, cols] becomes [parts, cols, rows].
HfTensor Transposed(const HfTensor& from) {
  HfTensor to = from;
  std::swap(to.shape[1], to.shape[2]);
  const size_t size = from.element_bytes();
  const auto rows = static_cast<size_t>(from.shape[1]);
  const auto cols = static_cast<size_t>(from.shape[2]);
  for (size_t i = 0; i < from.data.size() / size; ++i) {
    const size_t part = i / (rows * cols);
    const size_t row = i / cols % rows;
    const size_t target = part * rows * cols + i % cols * rows + row;
    std::memcpy(&to.data[target * size], &from.data[i * size], size);
  }
  return to;
}

// Rows `begin`, begin + step ... of each part of [parts, rows, cols], `count` of them.
HfTensor Rows(const HfTensor& from, int64_t begin, int64_t step, int64_t count) {
  HfTensor to = {from.format, {from.shape[0], count, from.shape[2]}, {}};
  const auto row_bytes = static_cast<int64_t>(from.element_bytes()) * from.shape[2];
  for (int64_t part = 0; part < from.shape[0]; ++part) {
    for (int64_t row = 0; row < count; ++row) {
      const auto at = from.data.begin() + (part * from.shape[1] + begin + row * step) * row_bytes;
      to.data.insert(to.data.end(), at, at + row_bytes);
    }
  }
  return to;
}

HfTensor NormPlusOne(const HfTensor& from) {
  std::vector<float> values(static_cast<size_t>(from.shape[0]));
  GetWeightFormat(from.format).decode(from.data.data(), from.shape[0], values.data());
  for (float& value : values) value += 1.0f;
  HfTensor to = {WeightFormat::kF32, from.shape, {}};
  to.data.resize(values.size() * sizeof(float));
  std::memcpy(to.data.data(), values.data(), to.data.size());
  return to;
}

class Converter {
 public:
  explicit Converter(const Json& config) : config_(config), architecture_(HfArchitecture(config)) {}

  absl::Status Run(const std::string& folder, FakeWeightSource* source);

 private:
  void Convert(const std::string& name, const HfTensor& tensor, FakeWeightSource* source);
  void GptOssExperts(const std::string& name, HfTensor tensor, FakeWeightSource* source);
  void LatentKeysAndValues(const std::string& layer, HfTensor tensor, FakeWeightSource* source);
  void LongropeFactors(const char* from, const char* name, FakeWeightSource* source);

  static void Add(const std::string& name, const HfTensor& tensor, FakeWeightSource* source) {
    source->Add(name, tensor.format, tensor.shape, tensor.data);
  }

  const Json& config_;
  const std::string architecture_;
};

void Converter::GptOssExperts(const std::string& name, HfTensor tensor, FakeWeightSource* source) {
  const std::string layer =
      absl::StrReplaceAll(name.substr(0, name.find(".mlp")), {{"model.layers.", "blk."}});
  const bool bias = absl::EndsWith(name, "_bias");
  const char* end = bias ? "_exps.bias" : "_exps.weight";
  if (bias) {
    tensor.shape.push_back(1);
  } else {
    tensor = Transposed(tensor);
  }
  const auto add = [&](const char* stem, HfTensor part) {
    if (bias) part.shape.pop_back();
    Add(absl::StrCat(layer, ".", stem, end), part, source);
  };
  if (absl::StrContains(name, "down_proj")) return add("ffn_down", tensor);
  add("ffn_gate", Rows(tensor, 0, 2, tensor.shape[1] / 2));
  add("ffn_up", Rows(tensor, 1, 2, tensor.shape[1] / 2));
}

void Converter::LatentKeysAndValues(const std::string& layer, HfTensor tensor,
                                    FakeWeightSource* source) {
  const int64_t heads = config_["num_attention_heads"];
  const int64_t keys = config_["qk_nope_head_dim"];
  const int64_t values = config_["v_head_dim"];
  tensor.shape = {heads, keys + values, tensor.shape[1]};
  Add(layer + ".attn_k_b.weight", Transposed(Rows(tensor, 0, 1, keys)), source);
  Add(layer + ".attn_v_b.weight", Rows(tensor, keys, 1, values), source);
}

void Converter::Convert(const std::string& name, const HfTensor& tensor, FakeWeightSource* source) {
  const bool gemma = absl::StartsWith(architecture_, "gemma");
  if (absl::StrContains(name, "mlp.experts.gate_up_proj") ||
      absl::StrContains(name, "mlp.experts.down_proj")) {
    return GptOssExperts(name, tensor, source);
  }
  if (absl::StrContains(name, "kv_b_proj")) {
    const std::string layer = name.substr(0, name.find(".self_attn"));
    return LatentKeysAndValues(absl::StrReplaceAll(layer, {{"model.layers.", "blk."}}), tensor,
                               source);
  }
  const HfTensor plain = gemma && absl::StrContains(name, "norm") ? NormPlusOne(tensor) : tensor;
  Add(GgufName(name, architecture_), plain, source);
}

void Converter::LongropeFactors(const char* from, const char* name, FakeWeightSource* source) {
  if (!config_.contains("rope_scaling") || !config_["rope_scaling"].is_object()) return;
  if (!config_["rope_scaling"].contains(from)) return;
  const auto factors = config_["rope_scaling"][from].get<std::vector<float>>();
  HfTensor tensor = {WeightFormat::kF32, {static_cast<int64_t>(factors.size())}, {}};
  tensor.data.resize(factors.size() * sizeof(float));
  std::memcpy(tensor.data.data(), factors.data(), tensor.data.size());
  Add(name, tensor, source);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

WeightFormat FormatOf(const std::string& dtype) {
  if (dtype == "F16") return WeightFormat::kF16;
  return dtype == "BF16" ? WeightFormat::kBF16 : WeightFormat::kF32;
}

absl::Status Converter::Run(const std::string& folder, FakeWeightSource* source) {
  const std::string file = ReadAll(folder + "/model.safetensors");
  uint64_t header_size = 0;
  if (file.size() < sizeof(header_size)) return absl::NotFoundError(folder + ": no model");
  std::memcpy(&header_size, file.data(), sizeof(header_size));
  const Json header = Json::parse(file.substr(8, header_size), nullptr, false);
  std::map<std::string, HfTensor> experts;
  const int64_t num_experts =
      std::max({config_.value("num_local_experts", 0), config_.value("num_experts", 0),
                config_.value("n_routed_experts", 0)});
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = 8 + header_size + entry["data_offsets"][0].get<uint64_t>();
    const auto end = 8 + header_size + entry["data_offsets"][1].get<uint64_t>();
    HfTensor tensor = {FormatOf(entry["dtype"]), entry["shape"].get<std::vector<int64_t>>(), {}};
    tensor.data.assign(file.begin() + static_cast<std::ptrdiff_t>(begin),
                       file.begin() + static_cast<std::ptrdiff_t>(end));
    const std::string expert_name = ExpertName(name);
    if (expert_name.empty()) {
      Convert(name, tensor, source);
      continue;
    }
    HfTensor& all = experts[expert_name];  // fewer than ten of them: names sort as numbers do
    all.format = tensor.format;
    all.shape = {num_experts, tensor.shape[0], tensor.shape[1]};
    all.data.insert(all.data.end(), tensor.data.begin(), tensor.data.end());
  }
  for (const auto& [name, tensor] : experts) Add(name, tensor, source);
  LongropeFactors("long_factor", "rope_factors_long.weight", source);
  LongropeFactors("short_factor", "rope_factors_short.weight", source);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FakeWeightSource> HfModel(const std::string& folder) {
  const Json config = Json::parse(ReadAll(folder + "/config.json"), nullptr, false);
  if (config.is_discarded()) return absl::NotFoundError(folder + ": no config");
  FakeWeightSource source;
  WriteHfConfig(config, &source.mutable_metadata());
  const absl::Status status = Converter(config).Run(folder, &source);
  if (!status.ok()) return status;
  return source;
}

}  // namespace llm
