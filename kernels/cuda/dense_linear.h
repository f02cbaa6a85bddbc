// Linear layers by cuBLASLt, of the weight formats whose products it has.
//
// BF16 and F16 weights meet rows rounded to their own type, whatever the number of rows. F8_E4M3
// and Q8_F32 weights, where a row has one scale, meet rows of e4m3 or int8 codes with a scale a
// row; their codes are taken out of the blocks for each call, which pays from kE4M3Rows or
// kInt8Rows on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/launch_stream.h"
#include "kernels/dense_shape.h"
#include "kernels/linear.h"

namespace llm {

// Used by one thread, for one stream.
class DenseLinear {
 public:
  // Of rows within the shape: larger ones are left to other kernels.
  static size_t WorkspaceBytes(const DenseShape& shape);
  // `memory` is the device's, WorkspaceBytes long, and outlives this. UNAVAILABLE where cuBLASLt is
  // not here.
  static absl::StatusOr<std::unique_ptr<DenseLinear>> Create(std::byte* memory, size_t bytes);

  // Activations have changed since the last call of Run.
  void Begin() { converted_.reset(); }
  // False: other kernels have to do this output, all of it. Results are those of `linear` but for
  // the order of additions and the activations' types. UNIMPLEMENTED in a recording: the library
  // takes streams alone, and nothing captures one (see GraphRecording).
  absl::StatusOr<bool> Run(const LinearParams& params, const LinearOutput& output,
                           LaunchStream stream);
  // What the library refused, or failed at, since the last call; see CublasLt.
  std::vector<std::string> TakeNotices() { return library_->TakeNotices(); }
  const CublasLt& library() const { return *library_; }

 private:
  DenseLinear(std::byte* memory, std::byte* rows, size_t rows_bytes,
              std::unique_ptr<CublasLt> library)
      : weight_codes_(memory), rows_(rows), rows_bytes_(rows_bytes), library_(std::move(library)) {}
  absl::Status Convert(const Activations& activations, DenseType type, LaunchStream stream);
  absl::StatusOr<bool> RunFloats(const LinearParams& params, const LinearOutput& output,
                                 DenseType type, LaunchStream stream);
  absl::StatusOr<bool> RunCodes(const LinearParams& params, const LinearOutput& output,
                                DenseType type, LaunchStream stream);
  float* row_scales(const Activations& activations) const;

  std::byte* const weight_codes_;  // and their scales
  std::byte* const rows_;          // activations in the library's types, and their scales
  const size_t rows_bytes_;
  const std::unique_ptr<CublasLt> library_;
  std::optional<DenseType> converted_;  // what rows_ holds of the activations of this call
};

}  // namespace llm
