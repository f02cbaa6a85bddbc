// One token of rope_kv_write, with everything that the launcher has looked up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"

namespace llm {

struct RopeKvWriteToken {
  float* q;        // [num_heads, head_dim]
  float* k;        // [num_kv_heads, head_dim]
  const float* v;  // [num_kv_heads, head_dim]
  int num_heads;
  int num_kv_heads;
  int head_dim;
  const float* q_norm;
  const float* k_norm;
  float norm_eps;
  bool adjacent;  // pairs
  int rope_dim;
  const float* cos_sin;  // [rope_dim / 2, 2]
  DType dtype;
  std::byte* block;  // kv head h has its region at block + h * head_bytes
  size_t head_bytes;
  size_t values_offset;
  size_t key_scales_offset;
  size_t value_scales_offset;
  int offset;  // of the token in its block
  int block_size;
  bool constant_scales;  // key_scale and value_scale are those of every token
  float key_scale;
  float value_scale;
};

}  // namespace llm
