// Rotary positions: the table of a step, and the fused op that norms, rotates and stores keys and
// values.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kv_layout.h"
#include "src/tensor/stream.h"

namespace llm {

// cos_sin[t, i] = {cos(a), sin(a)} * magnitude with a = f32(positions[t]) * inv_freq[i] rounded to
// f32  (Su et al., 2021)
struct RopeTableParams {
  absl::Span<const int32_t> positions;  // [tokens]
  absl::Span<const float> inv_freq;     // [rope_dim / 2]
  float magnitude = 1.0f;               // yarn's attention factor
  float* cos_sin = nullptr;             // [tokens, rope_dim / 2, 2]
};
using RopeTableFn = absl::Status (*)(const RopeTableParams& params, const Stream& stream);

enum class RopePairs : int32_t {
  kHalves = 0,    // dimension i turns with i + rope_dim / 2 (NeoX; Gemma, Qwen)
  kAdjacent = 1,  // dimension 2i turns with 2i + 1 (Llama in GGUF files)
};

// Per token and head: q and k are RMS-normed when a norm weight is given, rotated (first rope_dim
// dimensions), q is written in place, k and v are stored at the token's slot. A token's slot is
// block * block_size + offset.
struct RopeKvWriteParams {
  float* q = nullptr;  // [tokens, num_heads, head_dim], token stride q_stride
  float* k =
      nullptr;  // [tokens, num_kv_heads, head_dim], token stride kv_stride; overwritten (scratch)
  const float* v = nullptr;  // same shape and stride as k
  int64_t q_stride = 0;
  int64_t kv_stride = 0;
  int num_heads = 0;
  const float* q_norm = nullptr;  // [head_dim] or null
  const float* k_norm = nullptr;  // [head_dim] or null
  float norm_eps = 0;
  RopePairs pairs = RopePairs::kHalves;
  int rope_dim = 0;                // even, <= head_dim; 0: no rotation
  const float* cos_sin = nullptr;  // [tokens, rope_dim / 2, 2]
  absl::Span<const int32_t>
      slot_mapping;  // [tokens], distinct or kNoSlot; INVALID_ARGUMENT outside the layer's blocks
  KvLayerView kv;
};
using RopeKvWriteFn = absl::Status (*)(const RopeKvWriteParams& params, const Stream& stream);

}  // namespace llm
