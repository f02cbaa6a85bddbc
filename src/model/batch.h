// One step's work, flattened over sequences. tokens = sum of chunk lengths.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/pending_tokens.h"

namespace llm {

struct GroupBatch {
  absl::Span<const int32_t> slot_mapping;  // [tokens]
  absl::Span<const int32_t> block_table;   // [sequences, max_blocks]
  int64_t max_blocks = 0;
};

struct Batch {
  absl::Span<const int32_t> token_ids;  // [tokens]
  absl::Span<const int32_t> positions;  // [tokens]
  absl::Span<const int32_t>
      query_start;  // [sequences + 1]  row i owns tokens [query_start[i], query_start[i+1])
  absl::Span<const int32_t> context_lens;  // [sequences]      keys attended to, this chunk included
  absl::Span<const int32_t>
      logit_rows;  // [sampled]        token indices that need logits, ascending
  absl::Span<const int32_t>
      hidden_rows;  // [rows]           token indices whose hidden state is wanted, ascending
  absl::Span<const int32_t> rope_variants;  // [sequences]      1: turns by the long frequencies
  absl::Span<const GroupBatch> groups;      // [kv_groups]
  PendingTokens pending = {};               // what token_ids below 0 name
};

}  // namespace llm
