// cuBLASLt counts columns first: what is row by row here is its transpose there.
#include "tests/bench/cublaslt_matmul.h"

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm::bench {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;

absl::Status Check(const char* what, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", cublasLtGetStatusString(status)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CublasLtMatmul>> CublasLtMatmul::Create(int64_t rows,
                                                                       int64_t outputs,
                                                                       int64_t cols) {
  std::unique_ptr<CublasLtMatmul> matmul(new CublasLtMatmul);
  LLM_RETURN_IF_ERROR(matmul->Describe(rows, outputs, cols));
  return matmul;
}

CublasLtMatmul::~CublasLtMatmul() {
  for (cublasLtMatrixLayout_t layout : {weight_, activations_, out_}) {
    if (layout != nullptr) (void)cublasLtMatrixLayoutDestroy(layout);
  }
  if (matmul_ != nullptr) (void)cublasLtMatmulDescDestroy(matmul_);
  if (handle_ != nullptr) (void)cublasLtDestroy(handle_);
}

absl::Status CublasLtMatmul::Describe(int64_t rows, int64_t outputs, int64_t cols) {
  const auto m = static_cast<uint64_t>(outputs);
  const auto n = static_cast<uint64_t>(rows);
  const auto k = static_cast<uint64_t>(cols);
  LLM_RETURN_IF_ERROR(Check("handle", cublasLtCreate(&handle_)));
  LLM_RETURN_IF_ERROR(
      Check("matmul", cublasLtMatmulDescCreate(&matmul_, CUBLAS_COMPUTE_32F, CUDA_R_32F)));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  LLM_RETURN_IF_ERROR(
      Check("matmul", cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                     &transposed, sizeof(transposed))));
  LLM_RETURN_IF_ERROR(
      Check("layout", cublasLtMatrixLayoutCreate(&weight_, CUDA_R_16BF, k, m, cols)));
  LLM_RETURN_IF_ERROR(
      Check("layout", cublasLtMatrixLayoutCreate(&activations_, CUDA_R_16BF, k, n, cols)));
  LLM_RETURN_IF_ERROR(
      Check("layout", cublasLtMatrixLayoutCreate(&out_, CUDA_R_16BF, m, n, outputs)));
  LLM_ASSIGN_OR_RETURN(workspace_, AllocateDevice(kWorkspaceBytes, "cuBLASLt workspace"));
  cublasLtMatmulPreference_t preference = nullptr;
  LLM_RETURN_IF_ERROR(Check("preference", cublasLtMatmulPreferenceCreate(&preference)));
  const size_t bytes = kWorkspaceBytes;
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmulAlgoGetHeuristic(handle_, matmul_, weight_, activations_, out_, out_,
                                            preference, 1, &found, &count);
  }
  (void)cublasLtMatmulPreferenceDestroy(preference);
  LLM_RETURN_IF_ERROR(Check("algorithm", status));
  if (count == 0) return absl::UnimplementedError("cuBLASLt: no algorithm for the shape");
  algorithm_ = found.algo;
  return absl::OkStatus();
}

absl::Status CublasLtMatmul::Run(const void* activations, const void* weight, void* out,
                                 cudaStream_t stream) {
  const float one = 1, zero = 0;
  return Check("matmul", cublasLtMatmul(handle_, matmul_, &one, weight, weight_, activations,
                                        activations_, &zero, out, out_, out, out_, &algorithm_,
                                        workspace_.get(), kWorkspaceBytes, stream));
}

}  // namespace llm::bench
