// cuBLASLt's own rate in bf16, which prefill is measured against.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device_buffer.h"

namespace llm::bench {

// out[rows, outputs] = activations[rows, cols] x weight[outputs, cols]^T in bf16, added up in f32,
// by the algorithm that cuBLASLt thinks the fastest.
class CublasLtMatmul {
 public:
  static absl::StatusOr<std::unique_ptr<CublasLtMatmul>> Create(int64_t rows, int64_t outputs,
                                                                int64_t cols);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  absl::Status Run(const void* activations, const void* weight, void* out, cudaStream_t stream);

 private:
  CublasLtMatmul() = default;
  absl::Status Describe(int64_t rows, int64_t outputs, int64_t cols);

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t matmul_ = nullptr;
  cublasLtMatrixLayout_t weight_ = nullptr;
  cublasLtMatrixLayout_t activations_ = nullptr;
  cublasLtMatrixLayout_t out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  DeviceMemoryOwner workspace_;
};

}  // namespace llm::bench
