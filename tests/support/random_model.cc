// Weights of deviation 1 / sqrt(cols) keep activations near 1 through the layers; norms vary
// around 1.
#include "tests/support/random_model.h"

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

// Of latent attention.
constexpr int64_t kRank = 32;
constexpr int64_t kRope = 8;
constexpr int64_t kHead = 16;

class Builder {
 public:
  explicit Builder(const RandomModelOptions& options)
      : options_(options), generator_(options.seed) {}

  FakeWeightSource Build();

 private:
  void SetMetadata();
  void AddLayer(int layer);
  void AddAttention(int layer);
  void AddLatent(int layer);
  void AddFeedForward(int layer);
  void AddExperts(int layer);
  void SetLatent();
  void Matrix(const std::string& name, WeightFormat format, int64_t rows, int64_t cols);
  void Experts(const std::string& name, WeightFormat format, int64_t rows, int64_t cols,
               int64_t count);
  void Bias(const std::string& name, std::vector<int64_t> shape);
  bool Is(const char* architecture) const { return options_.architecture == architecture; }
  bool HasExperts(int layer) const {
    return Is("qwen3moe") || Is("gpt-oss") || (Is("deepseek2") && layer > 0);
  }
  bool IsGemma() const { return Is("gemma2") || Is("gemma3"); }
  void Norm(const std::string& name, int64_t size);
  std::vector<uint8_t> Encode(WeightFormat format, int64_t count, float deviation);

  template <typename T>
  void Append(T value, std::vector<uint8_t>* bytes) {
    const size_t offset = bytes->size();
    bytes->resize(offset + sizeof(T));
    std::memcpy(bytes->data() + offset, &value, sizeof(T));
  }

  const RandomModelOptions& options_;
  std::mt19937 generator_;
  FakeWeightSource source_;
};

std::vector<uint8_t> Builder::Encode(WeightFormat format, int64_t count, float deviation) {
  std::normal_distribution<float> normal(0.0f, deviation);
  std::uniform_int_distribution<int> byte(0, 255);
  std::vector<uint8_t> bytes;
  if (!options_.with_data) return bytes;
  const int block_size = GetWeightFormat(format).block_size;
  for (int64_t i = 0; i < count / block_size; ++i) {
    switch (format) {
      case WeightFormat::kF32:
        Append(normal(generator_), &bytes);
        break;
      case WeightFormat::kF16:
        Append(F32ToF16(normal(generator_)), &bytes);
        break;
      case WeightFormat::kBF16:
        Append(F32ToBF16(normal(generator_)), &bytes);
        break;
      case WeightFormat::kQ8_0:  // uniform quants have deviation 74
        Append(F32ToF16(deviation / 74.0f * (1.0f + 0.5f * normal(generator_))), &bytes);
        for (int j = 0; j < 32; ++j) Append(static_cast<uint8_t>(byte(generator_)), &bytes);
        break;
      case WeightFormat::kQ4_1: {  // uniform quants have mean 7.5 and deviation 4.6
        const float scale = deviation / 4.6f * (1.0f + 0.5f * normal(generator_));
        Append(F32ToF16(scale), &bytes);
        Append(F32ToF16(-7.5f * scale), &bytes);
        for (int j = 0; j < 16; ++j) Append(static_cast<uint8_t>(byte(generator_)), &bytes);
        break;
      }
      case WeightFormat::kMXFP4:  // uniform codes have deviation 2.7
        Append(static_cast<uint8_t>(127 + std::lround(std::log2(deviation / 2.7f)) +
                                    byte(generator_) % 2),
               &bytes);
        for (int j = 0; j < 16; ++j) Append(static_cast<uint8_t>(byte(generator_)), &bytes);
        break;
      default:
        return {};
    }
  }
  return bytes;
}

void Builder::Matrix(const std::string& name, WeightFormat format, int64_t rows, int64_t cols) {
  const float deviation = 1.5f / std::sqrt(static_cast<float>(cols));
  source_.Add(name + ".weight", format, {rows, cols}, Encode(format, rows * cols, deviation));
}

void Builder::Experts(const std::string& name, WeightFormat format, int64_t rows, int64_t cols,
                      int64_t count) {
  const float deviation = 1.5f / std::sqrt(static_cast<float>(cols));
  source_.Add(name + ".weight", format, {count, rows, cols},
              Encode(format, count * rows * cols, deviation));
}

void Builder::Bias(const std::string& name, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  source_.Add(name, WeightFormat::kF32, std::move(shape), Encode(WeightFormat::kF32, count, 0.3f));
}

void Builder::Norm(const std::string& name, int64_t size) {
  std::uniform_real_distribution<float> around_one(0.5f, 1.5f);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < size && options_.with_data; ++i) Append(around_one(generator_), &bytes);
  source_.Add(name + ".weight", WeightFormat::kF32, {size}, std::move(bytes));
}

void Builder::SetMetadata() {
  FakeMetadata& metadata = source_.mutable_metadata();
  metadata.Set("general.architecture", options_.architecture);
  const auto set = [&](const char* key, FakeMetadata::Value value) {
    metadata.Set(absl::StrCat(options_.architecture, ".", key), std::move(value));
  };
  set("block_count", int64_t{options_.num_layers});
  set("context_length", int64_t{1024});
  set("embedding_length", int64_t{options_.hidden_size});
  set("feed_forward_length", int64_t{options_.ffn_size});
  set("attention.head_count", int64_t{options_.num_heads});
  set("attention.head_count_kv", int64_t{options_.num_kv_heads});
  set("attention.key_length", int64_t{options_.head_dim});
  set("attention.value_length", int64_t{options_.head_dim});
  set("attention.layer_norm_rms_epsilon", 1e-5);
  set("rope.freq_base", 10000.0);
  if (Is("deepseek2")) SetLatent();
  if (HasExperts(1)) {
    set("expert_count", int64_t{options_.num_experts});
    set("expert_used_count", int64_t{options_.experts_per_token});
    set("expert_feed_forward_length", int64_t{options_.expert_ffn_size});
  }
  if (Is("phi3")) set("rope.scaling.original_context_length", int64_t{36});
  if (IsGemma() || Is("phi3") || Is("gpt-oss")) {
    set("attention.sliding_window", int64_t{options_.window});
  }
  if (!Is("gemma3")) return;
  set("attention.sliding_window_pattern", int64_t{3});
}

void Builder::SetLatent() {
  const auto set = [&](const char* key, FakeMetadata::Value value) {
    source_.mutable_metadata().Set(absl::StrCat("deepseek2.", key), std::move(value));
  };
  set("attention.head_count_kv", int64_t{1});
  set("attention.q_lora_rank", kRank);
  set("attention.kv_lora_rank", kRank);
  set("attention.key_length", kRank + kRope);
  set("attention.value_length", kRank);
  set("attention.key_length_mla", kHead + kRope);
  set("attention.value_length_mla", kHead);
  set("rope.dimension_count", kRope);
  set("leading_dense_block_count", int64_t{1});
  set("expert_shared_count", int64_t{1});
  set("expert_gating_func", int64_t{2});
  set("expert_group_count", int64_t{3});
  set("expert_group_used_count", int64_t{2});
  set("expert_weights_norm", true);
  set("expert_weights_scale", 2.5);
}

void Builder::AddLayer(int layer) {
  const auto name = [&](const char* stem) { return absl::StrCat("blk.", layer, ".", stem); };
  const int64_t hidden = options_.hidden_size;
  Norm(name("attn_norm"), hidden);
  if (Is("deepseek2")) {
    AddLatent(layer);
  } else {
    AddAttention(layer);
  }
  if (IsGemma() || Is("gpt-oss")) Norm(name("post_attention_norm"), hidden);
  if (!Is("gpt-oss")) Norm(name("ffn_norm"), hidden);
  if (IsGemma()) Norm(name("post_ffw_norm"), hidden);
  if (HasExperts(layer)) {
    AddExperts(layer);
  } else {
    AddFeedForward(layer);
  }
}

void Builder::AddAttention(int layer) {
  const auto name = [&](const char* stem) { return absl::StrCat("blk.", layer, ".", stem); };
  const int64_t hidden = options_.hidden_size;
  const int64_t q = int64_t{options_.num_heads} * options_.head_dim;
  const int64_t kv = int64_t{options_.num_kv_heads} * options_.head_dim;
  if (Is("phi3")) {
    Matrix(name("attn_qkv"), options_.format, q + 2 * kv, hidden);
  } else {
    Matrix(name("attn_q"), options_.format, q, hidden);
    Matrix(name("attn_k"), options_.format, kv, hidden);
    Matrix(name("attn_v"), options_.value_format, kv, hidden);
  }
  Matrix(name("attn_output"), options_.format, hidden, q);
  if (Is("gpt-oss")) {
    Bias(name("attn_sinks.weight"), {options_.num_heads});
    Bias(name("attn_q.bias"), {q});
    Bias(name("attn_output.bias"), {hidden});
  }
  if (!Is("gemma3") && !Is("qwen3moe")) return;
  Norm(name("attn_q_norm"), options_.head_dim);
  Norm(name("attn_k_norm"), options_.head_dim);
}

void Builder::AddLatent(int layer) {
  const auto name = [&](const char* stem) { return absl::StrCat("blk.", layer, ".", stem); };
  const int64_t hidden = options_.hidden_size;
  const int64_t heads = options_.num_heads;
  Matrix(name("attn_q_a"), options_.format, kRank, hidden);
  Norm(name("attn_q_a_norm"), kRank);
  Matrix(name("attn_q_b"), options_.format, heads * (kHead + kRope), kRank);
  Matrix(name("attn_kv_a_mqa"), options_.value_format, kRank + kRope, hidden);
  Norm(name("attn_kv_a_norm"), kRank);
  Experts(name("attn_k_b"), WeightFormat::kF16, kRank, kHead, heads);
  Experts(name("attn_v_b"), options_.format, kHead, kRank, heads);
  Matrix(name("attn_output"), options_.format, hidden, heads * kHead);
}

void Builder::AddFeedForward(int layer) {
  const auto name = [&](const char* stem) { return absl::StrCat("blk.", layer, ".", stem); };
  const int64_t hidden = options_.hidden_size;
  if (Is("phi3")) {
    Matrix(name("ffn_up"), options_.value_format, 2 * options_.ffn_size, hidden);
  } else {
    Matrix(name("ffn_gate"), options_.value_format, options_.ffn_size, hidden);
    Matrix(name("ffn_up"), options_.format, options_.ffn_size, hidden);
  }
  Matrix(name("ffn_down"), options_.format, hidden, options_.ffn_size);
}

void Builder::AddExperts(int layer) {
  const auto name = [&](const char* stem) { return absl::StrCat("blk.", layer, ".", stem); };
  const int64_t hidden = options_.hidden_size;
  const int64_t count = options_.num_experts;
  const int64_t ffn = options_.expert_ffn_size;
  Matrix(name("ffn_gate_inp"), WeightFormat::kF32, count, hidden);
  Experts(name("ffn_gate_exps"), options_.value_format, ffn, hidden, count);
  Experts(name("ffn_up_exps"), options_.format, ffn, hidden, count);
  Experts(name("ffn_down_exps"), options_.format, hidden, ffn, count);
  if (Is("gpt-oss")) {
    Bias(name("ffn_gate_inp.bias"), {count});
    Bias(name("ffn_up_exps.bias"), {count, ffn});
    Bias(name("ffn_down_exps.bias"), {count, hidden});
  }
  if (!Is("deepseek2")) return;
  Bias(name("exp_probs_b.bias"), {count});
  Matrix(name("ffn_gate_shexp"), options_.format, ffn, hidden);
  Matrix(name("ffn_up_shexp"), options_.value_format, ffn, hidden);
  Matrix(name("ffn_down_shexp"), options_.format, hidden, ffn);
}

FakeWeightSource Builder::Build() {
  SetMetadata();
  Matrix("token_embd", options_.value_format, options_.vocab_size, options_.hidden_size);
  for (int layer = 0; layer < options_.num_layers; ++layer) AddLayer(layer);
  Norm("output_norm", options_.hidden_size);
  if (Is("phi3")) {
    Norm("rope_factors_short", options_.head_dim / 2);
    Norm("rope_factors_long", options_.head_dim / 2);
  }
  if (!options_.tied) Matrix("output", options_.format, options_.vocab_size, options_.hidden_size);
  return std::move(source_);
}

}  // namespace

FakeWeightSource RandomModel(const RandomModelOptions& options) { return Builder(options).Build(); }

}  // namespace llm
