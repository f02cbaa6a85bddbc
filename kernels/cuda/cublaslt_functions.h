// The functions of cuBLASLt that are used here, found at run time.
#pragma once

#include <cublasLt.h>

#include "absl/status/statusor.h"

namespace llm {

struct CublasLtFunctions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_matmul = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_matmul = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_matmul = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) find_algorithms = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

// Of the first library that has all of them. UNAVAILABLE, saying what each is missing.
absl::StatusOr<CublasLtFunctions> FindCublasLt();

}  // namespace llm
