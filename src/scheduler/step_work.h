// The quantities that a step's time depends on.
#pragma once

namespace llm {

// Sums over chunks. A chunk of one token counts as a decode: it is computed like one.
struct StepWork {
  double decode_rows = 0;
  double prefill_tokens = 0;
  // Keys that decodes see, and (query, key) pairs of prefills: averages over the layers, since
  // windows let some of them see fewer.
  double decode_keys = 0;
  double prefill_pairs = 0;
};

inline StepWork operator+(const StepWork& a, const StepWork& b) {
  return {.decode_rows = a.decode_rows + b.decode_rows,
          .prefill_tokens = a.prefill_tokens + b.prefill_tokens,
          .decode_keys = a.decode_keys + b.decode_keys,
          .prefill_pairs = a.prefill_pairs + b.prefill_pairs};
}

}  // namespace llm
