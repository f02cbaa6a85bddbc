// Rows of activations as linear layers read them: f32, or int8 in groups of 32 columns, or both.
#pragma once

#include <cstdint>

namespace llm {

inline constexpr int kActivationGroup = 32;  // columns that share one scale
inline constexpr int kActivationSumGroup =
    16;  // columns behind one entry of `sums`: the smallest weight group (Q6_K)

// A producer (norm, gate, attention) writes the forms whose pointers are set. Owned by the caller,
// 64-byte aligned.
//
// Quantisation of one group: amax = max |x|; scale = amax / 127; q = round_to_nearest_even(x * (127
// / amax)), in [-127, 127]; amax of 0, or so small that 127 / amax is infinite, gives scale 0 and q
// 0. When a value is not finite the scale is NaN and q 0, so that the fault reaches the logits,
// where it is reported, and no conversion is undefined.
struct Activations {
  float* values = nullptr;   // [rows, cols]
  int8_t* quants = nullptr;  // [rows, cols]; REQUIRES cols % 32 == 0
  float* scales = nullptr;   // [rows, cols / 32]
  int16_t* sums = nullptr;   // [rows, cols / 16]: sum of quants
  int64_t rows = 0;
  int64_t cols = 0;
};

}  // namespace llm
