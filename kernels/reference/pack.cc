// The reference reads file blocks as they are: packing copies them.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/reference/reference.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {

absl::StatusOr<size_t> ReferencePackedBytes(WeightFormat format, int64_t rows, int64_t cols) {
  const WeightFormatInfo* info = FindWeightFormat(static_cast<int32_t>(format));
  if (info == nullptr || rows < 0 || cols < 1 || cols % info->block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "packed_bytes: format ", static_cast<int32_t>(format), " has no [", rows, ", ", cols, "]"));
  }
  const auto row_bytes = CheckedMul<int64_t>(cols / info->block_size, info->block_bytes);
  const auto bytes = row_bytes ? CheckedMul<int64_t>(*row_bytes, rows) : std::nullopt;
  if (!bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("packed_bytes: [", rows, ", ", cols, "] is too large"));
  }
  return static_cast<size_t>(*bytes);
}

absl::Status ReferencePackRows(const PackRowsParams& params) {
  LLM_RETURN_IF_ERROR(CheckPackRows(params));
  if (params.num_rows == 0) return absl::OkStatus();
  const int64_t row_bytes = RowBytes(GetWeightFormat(params.weight.format), params.weight.cols);
  std::memcpy(params.destination + params.row_begin * row_bytes, params.source,
              static_cast<size_t>(params.num_rows * row_bytes));
  return absl::OkStatus();
}

}  // namespace llm
