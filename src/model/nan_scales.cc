// Both formats begin a block with its exponent.
#include "src/model/nan_scales.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/mxfp8.h"
#include "src/loader/gguf_types.h"

namespace llm {
namespace {

constexpr uint8_t kE8m0Nan = 0xff;
static_assert(offsetof(MXFP4, exponent) == 0 && offsetof(MXFP8, exponent) == 0);

}  // namespace

absl::Status RefuseNanScales(const BlockRows& rows) {
  if (rows.format != WeightFormat::kMXFP4 && rows.format != WeightFormat::kMXFP8) {
    return absl::OkStatus();
  }
  const WeightFormatInfo& format = GetWeightFormat(rows.format);
  const int64_t row_blocks = rows.cols / format.block_size;
  const auto* at = static_cast<const uint8_t*>(rows.blocks);
  for (int64_t i = 0; i < rows.count * row_blocks; ++i, at += format.block_bytes) {
    if (*at != kE8m0Nan) continue;
    return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(rows.tensor), ": row ",
                                                   rows.first + i / row_blocks, ": scale ",
                                                   i % row_blocks, " is NaN (the exponent 0xff)"));
  }
  return absl::OkStatus();
}

}  // namespace llm
