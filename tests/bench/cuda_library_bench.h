// cuBLASLt by itself, on the shapes of others.
#pragma once

#include "kernels/cuda/cublaslt.h"
#include "tests/bench/cuda_bench.h"

namespace llm::bench {

// Microseconds of a product of the library's, over weights that no cache holds. UNIMPLEMENTED where
// it has no algorithm, UNAVAILABLE where it is not here.
absl::StatusOr<double> LibraryMicroseconds(const Bench& bench, DenseType type, int64_t rows,
                                           int64_t outputs, int64_t cols);

}  // namespace llm::bench
