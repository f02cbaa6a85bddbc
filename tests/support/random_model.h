// Tiny models of any architecture with seeded random weights.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/fake_weight_source.h"

namespace llm {

struct RandomModelOptions {
  std::string architecture =
      "llama";  // or "gemma2", "gemma3", "qwen3moe", "phi3", "gpt-oss", "deepseek2"
  WeightFormat format = WeightFormat::kF16;  // of the matrices; F32, F16, BF16, Q8_0, Q4_1, MXFP4
  WeightFormat value_format =
      WeightFormat::kF16;  // of attn_v, the gate and the embedding, so that mixes are seen
  int num_layers = 3;
  int hidden_size = 64;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 32;
  int ffn_size = 96;
  int vocab_size = 160;
  int window = 24;      // gemma3: layers 1, 2, 4, 5 ... of 3; gemma2, gpt-oss: 1, 3 ...; phi3: all
  int num_experts = 6;  // qwen3moe, gpt-oss, deepseek2
  int experts_per_token = 2;
  int expert_ffn_size = 64;
  bool tied = true;
  bool with_data = true;
  uint32_t seed = 1;
};

FakeWeightSource RandomModel(const RandomModelOptions& options);

}  // namespace llm
