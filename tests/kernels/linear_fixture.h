// Random weights and activations for tests of `linear`, `pack_rows` and `embed`.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "src/base/thread_pool.h"
#include "src/tensor/buffer.h"
#include "tests/kernels/kernel_test_util.h"

namespace llm {

// Every format of formats.def.
std::vector<WeightFormat> AllWeightFormats();

// File blocks of a [rows, cols] weight with values of a plausible size, and what they decode to.
struct RandomWeight {
  WeightFormat format;
  int64_t rows;
  int64_t cols;
  std::vector<uint8_t> blocks;
  std::vector<float> decoded;  // [rows, cols]
};
RandomWeight MakeRandomWeight(WeightFormat format, int64_t rows, int64_t cols,
                              std::mt19937* random);
// The same with all bytes but the f16 numbers equal to `pattern`: largest and smallest integers.
RandomWeight MakePatternWeight(WeightFormat format, int64_t rows, int64_t cols, int pattern,
                               std::mt19937* random);

// The weight as `kernels` packs it; packed in two ranges of rows when it has more than one tile.
struct Packed {
  Allocator allocator;
  Buffer buffer;
  PackedWeight weight;
};
std::unique_ptr<Packed> Pack(const KernelTable& kernels, const RandomWeight& weight);

// Random rows in both forms.
struct RandomActivations {
  RandomActivations(int64_t rows, int64_t cols, std::mt19937* random);

  // Rows [begin, begin + count): f32 only, or (REQUIRES: cols % 32 == 0) int8 only.
  Activations Values(int64_t begin, int64_t count) const;
  Activations Quants(int64_t begin, int64_t count) const;

  int64_t rows;
  int64_t cols;
  std::vector<float> values;
  std::vector<int8_t> quants;
  std::vector<float> scales;
  std::vector<int16_t> sums;
};

}  // namespace llm
