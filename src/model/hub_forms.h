// Tensors of a hub whose bytes are not those of the GGUF tensor: computed when they are read.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/quant/weight_format.h"
#include "src/loader/composed_file.h"
#include "src/loader/safetensors_header.h"

namespace llm {

// Bytes that are computed by rows of one size.
class DerivedRows : public DerivedBytes {
 public:
  explicit DerivedRows(int64_t row_bytes) : row_bytes_(static_cast<uint64_t>(row_bytes)) {}
  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const final;

 protected:
  virtual absl::Status ReadRows(int64_t first, int64_t count, char* dst) const = 0;

 private:
  const uint64_t row_bytes_;
};

// A stored vector w as 1 + w, in f32.
std::shared_ptr<const DerivedBytes> OnePlus(const SafeTensor& tensor, WeightFormat format);

// Elements [parts, rows, cols] of a tensor: (p, r, c) is the one at
// first + p * part_step + r * row_step + c * col_step.
struct TensorView {
  int64_t parts = 1;
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t first = 0;
  int64_t part_step = 0;
  int64_t row_step = 0;
  int64_t col_step = 1;
};
// REQUIRES: every element lies in the tensor.
std::shared_ptr<const DerivedBytes> ViewOf(const SafeTensor& tensor, const TensorView& view);

// Rows first, first + step, ... of `blocks` [rows, cols / 32, 16] and `scales` [rows, cols / 32]
// (leading dimensions count as rows), as MXFP4 blocks of GGUF.
std::shared_ptr<const DerivedBytes> Mxfp4Rows(const SafeTensor& blocks, const SafeTensor& scales,
                                              int64_t first, int64_t step);

}  // namespace llm
