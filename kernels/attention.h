// Causal attention of a ragged batch over paged keys and values (flash attention with fixed
// splits).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/activations.h"
#include "kernels/kv_layout.h"
#include "src/tensor/stream.h"

namespace llm {

// Keys [512 s, 512 (s + 1)) of a sequence are one split. Each split of each query gives (max, sum,
// weighted values); the splits of a query are merged in ascending order, also when one task
// computes all of them.
inline constexpr int kAttentionSplit = 512;

// Row i of the batch owns query tokens [query_start[i], query_start[i + 1]); they are the last ones
// of context_lens[i] keys, all of which (the chunk's own included) are already stored. Query at
// position p sees key j iff j <= p and, with a window, p - j < window. Blocks wholly before the
// window are never read (their table entries may be anything). Keys and values beyond a query's
// context are neither read into sums nor multiplied: they may be NaN.
struct AttentionParams {
  const float* q = nullptr;  // [tokens, num_heads, head_dim], token stride q_stride
  int64_t q_stride = 0;
  int num_heads = 0;                       // a multiple of kv.layout.num_kv_heads
  absl::Span<const int32_t> query_start;   // [sequences + 1]
  absl::Span<const int32_t> context_lens;  // [sequences]
  const int32_t* block_table = nullptr;    // [sequences, max_blocks]
  int64_t max_blocks = 0;
  KvLayerView kv;
  float scale = 0;     // multiplies q k
  int window = 0;      // 0: none
  float soft_cap = 0;  // 0: none; else cap * tanh(score / cap)
  // A score of each head that takes its share of the softmax and adds no value (gpt-oss).
  const float* sinks = nullptr;    // [num_heads] or null
  Activations output;              // [tokens, num_heads * head_dim]
  std::byte* workspace = nullptr;  // attention_workspace_bytes() long, 64-byte aligned
  size_t workspace_bytes = 0;
};
using AttentionFn = absl::Status (*)(const AttentionParams& params, const Stream& stream);

// Enough for every batch of at most `max_tokens` queries in `max_sequences` rows with at most
// `max_context` keys each.
struct AttentionShape {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_context = 0;
  int num_heads = 0;
  int head_dim = 0;
  int num_threads = 1;
};
using AttentionWorkspaceFn = size_t (*)(const AttentionShape& shape);

}  // namespace llm
