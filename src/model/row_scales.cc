// Compared as bits: a scale that is repeated has the same.
#include "src/model/row_scales.h"

#include <cstring>

#include "kernels/quant/f8_e4m3.h"
#include "kernels/quant/q8_f32.h"

namespace llm {
namespace {

static_assert(offsetof(F8_E4M3, scale) == 0 && offsetof(Q8_F32, scale) == 0);

}  // namespace

bool HaveRowScales(WeightFormat format, int64_t cols, int64_t num_rows, const std::byte* blocks) {
  if (format != WeightFormat::kF8_E4M3 && format != WeightFormat::kQ8_F32) return false;
  const int64_t row_bytes = RowBytes(GetWeightFormat(format), cols);
  constexpr auto kBlockBytes = static_cast<int64_t>(sizeof(F8_E4M3));
  static_assert(sizeof(Q8_F32) == sizeof(F8_E4M3));
  for (int64_t row = 0; row < num_rows; ++row) {
    const std::byte* first = blocks + row * row_bytes;
    for (int64_t at = kBlockBytes; at < row_bytes; at += kBlockBytes) {
      if (std::memcmp(first, first + at, sizeof(float)) != 0) return false;
    }
  }
  return true;
}

}  // namespace llm
