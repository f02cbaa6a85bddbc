// An emulated cuBLASLt: its checks at the call, its arithmetic when the stream comes to it.
#include <cublasLt.h>

#include <cstring>

#include "tests/cuda_on_cpu/cublaslt_product.h"
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/libraries.h"

using llm::cuda_on_cpu::Algorithm;
using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::Libraries;
using llm::cuda_on_cpu::Matmul;
using llm::cuda_on_cpu::Operands;
using llm::cuda_on_cpu::Queue;

struct cublasLtContext {};  // NOLINT: the library's own names

namespace {

cublasStatus_t Enter(const char* call) {
  switch (Gpu::Get().Enter(call)) {
    case cudaSuccess:
      return CUBLAS_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation:
      return CUBLAS_STATUS_ALLOC_FAILED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

#define LLM_ENTER_LIBRARY_CALL()                                                                \
  const std::lock_guard<std::recursive_mutex> llm_enter_call_lock(Gpu::Get().mutex());          \
  if (const cublasStatus_t llm_entered = Enter(__func__); llm_entered != CUBLAS_STATUS_SUCCESS) \
  return llm_entered

template <typename T>
cublasStatus_t Set(T* to, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

float ScaleAt(cudaDataType type, const void* scale) {
  return type == CUDA_R_32I ? static_cast<float>(*static_cast<const int32_t*>(scale))
                            : *static_cast<const float*>(scale);
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  LLM_ENTER_LIBRARY_CALL();
  if (!Libraries::Get().suits_driver) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  LLM_ENTER_LIBRARY_CALL();
  *desc = new cublasLtMatmulDescOpaque_t{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  LLM_ENTER_LIBRARY_CALL();
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return Set(&desc->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return Set(&desc->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return Set(&desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return Set(&desc->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return Set(&desc->bias_type, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  LLM_ENTER_LIBRARY_CALL();
  *layout = new cublasLtMatrixLayoutOpaque_t{type, rows, cols, ld};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  LLM_ENTER_LIBRARY_CALL();
  return attribute == CUBLASLT_MATRIX_LAYOUT_COLS ? Set(&layout->cols, value, bytes)
                                                  : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  LLM_ENTER_LIBRARY_CALL();
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  LLM_ENTER_LIBRARY_CALL();
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    return Set(&preference->workspace_bytes, value, bytes);
  }
  return Set(&preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
             bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  LLM_ENTER_LIBRARY_CALL();
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (requested <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  ++Libraries::Get().num_choices;
  *count = 0;
  if (const int32_t error = Libraries::Get().choice_error; error != 0) {
    return static_cast<cublasStatus_t>(error);
  }
  const Matmul matmul = {*desc, *a, *b, *c, *d};
  const cublasStatus_t status = CheckMatmul(matmul);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const Algorithm algorithm = ChooseAlgorithm(matmul, *preference);
  if (!Libraries::Get().finds_algorithms || !IsUsable(algorithm)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *count = 1;
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof(algorithm));
  results[0].workspaceSize = algorithm.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  LLM_ENTER_LIBRARY_CALL();
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (Libraries::Get().refuses_products) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (const int32_t error = Libraries::Get().product_error; error != 0) {
    return static_cast<cublasStatus_t>(error);
  }
  Queue* queue = Gpu::Get().Find(stream);
  if (queue == nullptr || algo == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Matmul matmul = {*desc, *a_layout, *b_layout, *c_layout, *d_layout};
  const Operands operands = {a,
                             b,
                             c,
                             d,
                             static_cast<std::byte*>(workspace),
                             ScaleAt(desc->scale, alpha),
                             ScaleAt(desc->scale, beta)};
  Algorithm algorithm;
  std::memcpy(static_cast<void*>(&algorithm), algo, sizeof(algorithm));
  const cublasStatus_t status = CheckCall(matmul, operands, algorithm, workspace_bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  ++Libraries::Get().num_products;
  Gpu::Get().Submit(queue,
                    [matmul, operands, algorithm] { RunMatmul(matmul, operands, algorithm); });
  return CUBLAS_STATUS_SUCCESS;
}
