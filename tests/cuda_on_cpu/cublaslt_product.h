// Products of the emulated cuBLASLt: A transposed, B not, sums of 32 bits, as the backend asks for.
//
// An algorithm is for its types, its m and k, and up to its n, on which its order of additions
// depends.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

struct cublasLtMatmulDescOpaque_t {  // NOLINT
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t transpose_a = CUBLAS_OP_N;
  int32_t transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int32_t bias_type = -1;  // that of the result
};

struct cublasLtMatrixLayoutOpaque_t {  // NOLINT
  cudaDataType type;
  uint64_t rows;
  uint64_t cols;
  int64_t ld;

  size_t element_bytes() const {
    return type == CUDA_R_32F || type == CUDA_R_32I      ? 4
           : type == CUDA_R_8I || type == CUDA_R_8F_E4M3 ? 1
                                                         : 2;
  }
  size_t extent_bytes() const {
    return ((cols - 1) * static_cast<size_t>(ld) + rows) * element_bytes();
  }
};

struct cublasLtMatmulPreferenceOpaque_t {  // NOLINT
  uint64_t workspace_bytes = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace llm::cuda_on_cpu {

// What cublasLtMatmulAlgo_t holds.
struct Algorithm {
  uint32_t type = 0;
  uint32_t alignment[4] = {};  // of a, b, c and d
  uint64_t m = 0, n = 0, k = 0;
  uint64_t num_parts = 1;  // of k, each with a sum in the workspace
  uint64_t workspace_bytes = 0;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

struct Matmul {
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t a, b, c, d;
};

struct Operands {
  const void* a;
  const void* b;
  const void* c;
  void* d;
  std::byte* workspace;
  float alpha, beta;
};

// Whether the library has such products on this device.
cublasStatus_t CheckMatmul(const Matmul& matmul);
// REQUIRES: CheckMatmul.
Algorithm ChooseAlgorithm(const Matmul& matmul, const cublasLtMatmulPreferenceOpaque_t& preference);
bool IsUsable(const Algorithm& algorithm);
// What the library checks of a call; not whether pointers lead anywhere.
cublasStatus_t CheckCall(const Matmul& matmul, const Operands& operands, const Algorithm& algorithm,
                         size_t workspace_bytes);
// On the device. Breaks it where an operand lies outside of every allocation.
void RunMatmul(const Matmul& matmul, const Operands& operands, const Algorithm& algorithm);

}  // namespace llm::cuda_on_cpu
