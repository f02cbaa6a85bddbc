// Token embeddings: rows of a packed table, decoded to f32 and scaled.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/pack.h"
#include "kernels/pending_tokens.h"
#include "src/tensor/stream.h"

namespace llm {

struct EmbedParams {
  PackedWeight table;  // [vocab_size, hidden_size]
  // [tokens]; INVALID_ARGUMENT for one that is neither in the table nor pending
  absl::Span<const int32_t> token_ids;
  float scale = 1.0f;    // Gemma: sqrt(hidden_size)
  float* out = nullptr;  // [tokens, hidden_size]
  PendingTokens pending = {};
};
using EmbedFn = absl::Status (*)(const EmbedParams& params, const Stream& stream);

}  // namespace llm
