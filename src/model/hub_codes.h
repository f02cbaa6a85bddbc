// Integer codes of a checkpoint, with a scale and perhaps a zero point for each group of inputs, as
// blocks of Q4_0, Q8_0, Q4_Z, Q8_Z or Q8_F32.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "src/loader/safetensors_header.h"
#include "src/model/hub_present.h"

namespace llm {

// A matrix [rows, cols] of small integers in a tensor of two dimensions, words of 32 bits.
struct PackedInts {
  const SafeTensor* words = nullptr;
  int bits = 4;  // or 8
  int64_t rows = 0;
  int64_t cols = 0;
  bool transposed = false;   // the tensor's first dimension are columns
  bool packs_rows = false;   // a word holds neighbours in a column, else in a row
  bool interleaved = false;  // in AWQ's order, else the first in the low bits

  int64_t per_word() const { return 32 / bits; }
  // The tensor's shape.
  std::vector<int64_t> shape() const;
};

// Rows [first, first + count), one byte for each integer.
absl::Status ReadInts(const PackedInts& ints, int64_t first, int64_t count, std::string* out);

struct CodeLayout {
  PackedInts codes;                    // [outputs, inputs]
  const SafeTensor* scales = nullptr;  // [outputs, groups], or [groups, outputs]
  int64_t groups = 0;
  bool scales_transposed = false;
  bool is_signed = false;  // a code is its value; else it is less by a zero point
  // Of groups, [outputs, groups]. Without words: all of them in the middle.
  PackedInts zeros;
  int zero_bias = 0;  // the zero point less the stored number
  // The group of each input (GPTQ's g_idx), or null: inputs are in the order of groups.
  const SafeTensor* groups_of_inputs = nullptr;
};

// INVALID_ARGUMENT or UNIMPLEMENTED, naming the tensor, for scales, zero points and groups that do
// not fit the codes. Zero points themselves are looked at when they are read.
absl::StatusOr<HubPresented> PresentCodes(const CodeLayout& layout);

}  // namespace llm
