// What conversion changes: names; rows of q and k (Llama); 1 is added to norms (Gemma).
#include "tests/golden/hf_model.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

using Json = nlohmann::json;

std::string GgufName(std::string name, bool gemma) {
  if (name == "lm_head.weight") return "output.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  return absl::StrReplaceAll(
      name, {{"model.embed_tokens", "token_embd"},
             {"model.layers.", "blk."},
             {"input_layernorm", "attn_norm"},
             {"post_attention_layernorm", gemma ? "post_attention_norm" : "ffn_norm"},
             {"pre_feedforward_layernorm", "ffn_norm"},
             {"post_feedforward_layernorm", "post_ffw_norm"},
             {"mlp.gate_proj", "ffn_gate"},
             {"mlp.up_proj", "ffn_up"},
             {"mlp.down_proj", "ffn_down"},
             {"self_attn.q_proj", "attn_q"},
             {"self_attn.k_proj", "attn_k"},
             {"self_attn.v_proj", "attn_v"},
             {"self_attn.o_proj", "attn_output"},
             {"self_attn.q_norm", "attn_q_norm"},
             {"self_attn.k_norm", "attn_k_norm"}});
}

WeightFormat FormatOf(const std::string& dtype) {
  if (dtype == "F16") return WeightFormat::kF16;
  return dtype == "BF16" ? WeightFormat::kBF16 : WeightFormat::kF32;
}

// Row 2 i + half of a head is what was row i + half * head_dim / 2.
std::vector<uint8_t> PermuteRows(const std::vector<uint8_t>& data, int64_t rows, int64_t head_dim) {
  std::vector<uint8_t> result(data.size());
  const size_t row_bytes = data.size() / static_cast<size_t>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_head = row % head_dim;
    const int64_t source = row - in_head + in_head / 2 + in_head % 2 * (head_dim / 2);
    std::memcpy(&result[static_cast<size_t>(row) * row_bytes],
                &data[static_cast<size_t>(source) * row_bytes], row_bytes);
  }
  return result;
}

std::vector<uint8_t> NormPlusOne(WeightFormat format, const std::vector<uint8_t>& data,
                                 int64_t size) {
  std::vector<float> values(static_cast<size_t>(size));
  GetWeightFormat(format).decode(data.data(), size, values.data());
  for (float& value : values) value += 1.0f;
  std::vector<uint8_t> result(values.size() * sizeof(float));
  std::memcpy(result.data(), values.data(), result.size());
  return result;
}

void SetMetadata(const Json& config, bool gemma, FakeMetadata* metadata) {
  const std::string architecture = gemma ? "gemma3" : "llama";
  metadata->Set("general.architecture", architecture);
  const auto set = [&](const char* key, FakeMetadata::Value value) {
    metadata->Set(absl::StrCat(architecture, ".", key), std::move(value));
  };
  const auto copy_int = [&](const char* key, const char* from) {
    if (config.contains(from) && !config[from].is_null()) set(key, config[from].get<int64_t>());
  };
  const auto copy_float = [&](const char* key, const char* from) {
    if (config.contains(from) && !config[from].is_null()) set(key, config[from].get<double>());
  };
  copy_int("block_count", "num_hidden_layers");
  copy_int("context_length", "max_position_embeddings");
  copy_int("embedding_length", "hidden_size");
  copy_int("feed_forward_length", "intermediate_size");
  copy_int("attention.head_count", "num_attention_heads");
  copy_int("attention.head_count_kv", "num_key_value_heads");
  copy_int("attention.key_length", "head_dim");
  copy_int("attention.value_length", "head_dim");
  copy_float("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  copy_float("rope.freq_base", "rope_theta");
  if (config.contains("rope_scaling") && config["rope_scaling"].is_object()) {
    set("rope.scaling.type", std::string("linear"));
    set("rope.scaling.factor", config["rope_scaling"]["factor"].get<double>());
  }
  if (!gemma) return;
  copy_float("rope.freq_base_swa", "rope_local_base_freq");
  copy_int("attention.sliding_window", "sliding_window");
  copy_int("attention.sliding_window_pattern", "sliding_window_pattern");
  set("attention.scale", 1.0 / std::sqrt(config["query_pre_attn_scalar"].get<double>()));
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

absl::StatusOr<FakeWeightSource> HfModel(const std::string& folder) {
  const Json config = Json::parse(ReadAll(folder + "/config.json"), nullptr, false);
  const std::string file = ReadAll(folder + "/model.safetensors");
  uint64_t header_size = 0;
  if (config.is_discarded() || file.size() < sizeof(header_size)) {
    return absl::NotFoundError(absl::StrCat(folder, ": no model"));
  }
  std::memcpy(&header_size, file.data(), sizeof(header_size));
  const Json header = Json::parse(file.substr(8, header_size), nullptr, false);
  const bool gemma = config["model_type"] == "gemma3_text";
  FakeWeightSource source;
  SetMetadata(config, gemma, &source.mutable_metadata());
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    WeightFormat format = FormatOf(tensor["dtype"]);
    const auto shape = tensor["shape"].get<std::vector<int64_t>>();
    const auto begin = 8 + header_size + tensor["data_offsets"][0].get<uint64_t>();
    const auto end = 8 + header_size + tensor["data_offsets"][1].get<uint64_t>();
    std::vector<uint8_t> data(file.begin() + static_cast<std::ptrdiff_t>(begin),
                              file.begin() + static_cast<std::ptrdiff_t>(end));
    if (!gemma && (absl::StrContains(name, "q_proj") || absl::StrContains(name, "k_proj"))) {
      data = PermuteRows(data, shape[0], config["head_dim"]);
    } else if (gemma && absl::StrContains(name, "norm")) {
      data = NormPlusOne(format, data, shape[0]);
      format = WeightFormat::kF32;
    }
    source.Add(GgufName(name, gemma), format, shape, std::move(data));
  }
  return source;
}

}  // namespace llm
