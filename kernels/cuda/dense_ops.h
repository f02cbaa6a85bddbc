// What turns rows and weights into operands of cuBLASLt's products, and the products into results.
// Pointers are device memory, 16-byte aligned; shapes are checked and not empty. Compiled by nvcc:
// no Abseil here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "kernels/cuda/launch_stream.h"

namespace llm {

struct RoundRowsArgs {
  const float* values;  // [count]
  int64_t count;        // a multiple of 8
  uint16_t* out;        // [count]
};
// To nearest even. Beyond the largest f16: infinite.
cudaError_t LaunchRoundRowsToBF16(const RoundRowsArgs& args, LaunchStream stream);
cudaError_t LaunchRoundRowsToF16(const RoundRowsArgs& args, LaunchStream stream);

struct CodeRowsArgs {
  Activations activations;  // values, or quants where those are null
  uint8_t* codes;           // [rows, cols]
  float* scales;            // [rows]
};
// A row's largest magnitude becomes the largest code, 448 of e4m3 or 127 of int8. A row with a
// value that is not finite has the scale NaN.
cudaError_t LaunchCodeRowsE4M3(const CodeRowsArgs& args, LaunchStream stream);
cudaError_t LaunchCodeRowsInt8(const CodeRowsArgs& args, LaunchStream stream);

struct CodesOfBlocksArgs {
  const std::byte* blocks;  // [outputs, cols / 64] of F8_E4M3 or Q8_F32: a scale, 64 codes
  int64_t outputs;
  int64_t cols;    // a multiple of 64
  uint8_t* codes;  // [outputs, cols]
  float* scales;   // [outputs]: those of the first blocks. REQUIRES: a row's are all the same
};
cudaError_t LaunchCodesOfBlocks(const CodesOfBlocksArgs& args, LaunchStream stream);

struct ScaleSumsArgs {
  const float* row_scales;     // [rows]
  const float* output_scales;  // [outputs]
  const float* bias;           // [outputs] or null
  float* out;                  // [rows, outputs], row stride out_stride: sums in place
  int64_t rows;
  int64_t outputs;
  int64_t out_stride;
  bool integers;  // the sums are s32
};
cudaError_t LaunchScaleSums(const ScaleSumsArgs& args, LaunchStream stream);

}  // namespace llm
