// Weights as a backend wants them in memory. Packing is the backend's business; models see rows,
// cols and bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/quant/weight_format.h"

namespace llm {

struct PackedWeight {
  WeightFormat format =
      WeightFormat::kF32;  // of the source; decides which activations `linear` reads
  int64_t rows = 0;        // outputs
  int64_t cols = 0;        // inputs
  const std::byte* data =
      nullptr;              // borrowed, 64-byte aligned, packed_bytes(format, rows, cols) long
  bool row_scales = false;  // F8_E4M3, Q8_F32: known to have one scale a row
};

// Rows handled together: pack_rows takes whole tiles, except for the last rows of the matrix.
inline constexpr int kPackTileRows = 16;

// Bytes of the packed form. INVALID_ARGUMENT when cols is no multiple of the format's block or the
// size overflows.
using PackedBytesFn = absl::StatusOr<size_t> (*)(WeightFormat format, int64_t rows, int64_t cols);

struct PackRowsParams {
  PackedWeight weight;               // weight.data is ignored
  int64_t row_begin = 0;             // multiple of kPackTileRows
  int64_t num_rows = 0;              // multiple of kPackTileRows, or up to the last row
  const void* source = nullptr;      // num_rows rows of file blocks
  std::byte* destination = nullptr;  // start of the whole packed weight
};
// Runs on the calling thread; distinct row ranges may be packed concurrently. Pads the last tile
// with zeros.
using PackRowsFn = absl::Status (*)(const PackRowsParams& params);

}  // namespace llm
