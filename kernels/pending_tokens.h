// Tokens of the step before that the device has and the host does not know yet. Plain data: the
// host uploads it, device code reads it.
#pragma once

#include <cstdint>

#include "kernels/row_draw.h"

namespace llm {

// A token id below 0 names one: PendingArgmax(row) or PendingDraw(draw).
struct PendingTokens {
  const int32_t* argmax = nullptr;      // [num_rows]; null: there are none
  const TokenLogprob* drawn = nullptr;  // [num_draws]
  int32_t num_rows = 0;
  int32_t num_draws = 0;
};

constexpr int32_t PendingArgmax(int32_t row) { return -1 - 2 * row; }
constexpr int32_t PendingDraw(int32_t draw) { return -2 - 2 * draw; }

constexpr bool IsPending(int32_t id, const PendingTokens& pending) {
  const int32_t code = -1 - id;
  return id < 0 && code / 2 < (code % 2 == 0 ? pending.num_rows : pending.num_draws);
}

// What `id` stands for, in a table of so many rows. Row 0 in the place of a token that could not be
// drawn: its request ends, and nobody reads what comes of it. REQUIRES: IsPending where id < 0.
constexpr int32_t TokenOf(int32_t id, const PendingTokens& pending, int64_t table_rows) {
  if (id >= 0) return id;
  const int32_t code = -1 - id;
  const int32_t token = code % 2 == 0 ? pending.argmax[code / 2] : pending.drawn[code / 2].id;
  return token >= 0 && token < table_rows ? token : 0;
}

}  // namespace llm
