// The library's checks and its arithmetic.
#include "tests/cuda_on_cpu/cublaslt_product.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "src/tensor/float_convert.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/libraries.h"

namespace llm::cuda_on_cpu {
namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;

constexpr uint32_t kLeastAlignment = 16;  // of the algorithms that there are
constexpr uintptr_t kWorkspaceAlignment = 256;
constexpr uint64_t kFewColumns = 64;  // for fewer k is split

bool Fits(const Layout& layout) { return layout.ld >= static_cast<int64_t>(layout.rows); }

}  // namespace

// The library's tables of types and shapes.
cublasStatus_t CheckMatmul(const Matmul& x) {
  const bool bias = x.desc.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (x.a.rows != x.b.rows || x.a.cols != x.d.rows || x.b.cols != x.d.cols ||
      x.c.rows != x.d.rows || x.c.cols != x.d.cols || x.d.cols == 0 || !Fits(x.a) || !Fits(x.b) ||
      !Fits(x.c) || !Fits(x.d)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (x.desc.transpose_a != CUBLAS_OP_T || x.desc.transpose_b != CUBLAS_OP_N ||
      x.a.type != x.b.type || x.c.type != x.d.type ||
      (!bias && x.desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const uint64_t m = x.d.rows, k = x.a.rows;
  const bool floats =
      x.desc.compute == CUBLAS_COMPUTE_32F && x.desc.scale == CUDA_R_32F && x.d.type == CUDA_R_32F;
  bool supported = false;
  switch (x.a.type) {
    case CUDA_R_16BF:
    case CUDA_R_16F:
      supported = floats && (!bias || x.desc.bias_type == -1 || x.desc.bias_type == CUDA_R_32F);
      break;
    case CUDA_R_8F_E4M3:
      supported = floats && !bias && Gpu::Get().capability() >= std::pair(8, 9) && m % 16 == 0 &&
                  k % 16 == 0;
      break;
    case CUDA_R_8I:
      supported = x.desc.compute == CUBLAS_COMPUTE_32I && x.desc.scale == CUDA_R_32I &&
                  x.d.type == CUDA_R_32I && !bias && m % 4 == 0 && k % 4 == 0;
      break;
    default:
      break;
  }
  return supported ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

namespace {

bool IsAligned(const void* pointer, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

bool RowsAligned(const Layout& layout, uint64_t alignment) {
  return static_cast<uint64_t>(layout.ld) * layout.element_bytes() % alignment == 0;
}

float FloatAt(const Layout& layout, const void* matrix, size_t i) {
  switch (layout.type) {
    case CUDA_R_16BF:
      return BF16ToF32(static_cast<const uint16_t*>(matrix)[i]);
    case CUDA_R_16F:
      return F16ToF32(static_cast<const uint16_t*>(matrix)[i]);
    case CUDA_R_8F_E4M3:
      return F8E4M3ToF32(static_cast<const uint8_t*>(matrix)[i]);
    default:
      return static_cast<float>(static_cast<const int8_t*>(matrix)[i]);
  }
}

// Column by column, without what lies between them.
std::vector<float> Decode(const Layout& layout, const void* matrix) {
  std::vector<float> values(layout.rows * layout.cols);
  for (size_t col = 0; col < layout.cols; ++col) {
    for (size_t row = 0; row < layout.rows; ++row) {
      values[col * layout.rows + row] =
          FloatAt(layout, matrix, col * static_cast<size_t>(layout.ld) + row);
    }
  }
  return values;
}

float SumOf(const float* a, const float* b, size_t count) {
  if (Libraries::Get().order == Libraries::Order::kAscending) {
    float sum = 0;
    for (size_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }
  float even = 0, odd = 0;
  for (size_t i = 0; i < count; ++i) (i % 2 == 0 ? even : odd) += a[i] * b[i];
  return even + odd;
}

int32_t IntegerSumOf(const float* a, const float* b, size_t count) {
  int32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<int32_t>(a[i]) * static_cast<int32_t>(b[i]);
  return sum;
}

bool AllInMemory(const Matmul& x, const Operands& at, const Algorithm& algorithm) {
  const DeviceMemory& memory = DeviceMemory::Get();
  return memory.Contains(at.a, x.a.extent_bytes()) && memory.Contains(at.b, x.b.extent_bytes()) &&
         memory.Contains(at.d, x.d.extent_bytes()) &&
         (at.beta == 0 || memory.Contains(at.c, x.c.extent_bytes())) &&
         (algorithm.workspace_bytes == 0 ||
          memory.Contains(at.workspace, algorithm.workspace_bytes)) &&
         (x.desc.epilogue != CUBLASLT_EPILOGUE_BIAS ||
          memory.Contains(x.desc.bias, x.d.rows * sizeof(float)));
}

}  // namespace

void RunMatmul(const Matmul& x, const Operands& at, const Algorithm& algorithm) {
  const DeviceMemory::Window window;
  if (!AllInMemory(x, at, algorithm)) {
    Gpu::Get().Break("cuBLASLt: an operand of a product lies outside of every allocation");
    return;
  }
  if (algorithm.workspace_bytes > 0) std::memset(at.workspace, 0xa5, algorithm.workspace_bytes);
  const std::vector<float> a = Decode(x.a, at.a);
  const std::vector<float> b = Decode(x.b, at.b);
  const size_t k = x.a.rows;
  const bool bias = x.desc.epilogue == CUBLASLT_EPILOGUE_BIAS;
  for (size_t col = 0; col < x.d.cols; ++col) {
    for (size_t row = 0; row < x.d.rows; ++row) {
      const size_t to = col * static_cast<size_t>(x.d.ld) + row;
      if (x.d.type == CUDA_R_32I) {
        static_cast<int32_t*>(at.d)[to] =
            static_cast<int32_t>(at.alpha) * IntegerSumOf(&a[row * k], &b[col * k], k);
        continue;
      }
      float sum = 0;
      for (uint64_t part = 0; part < algorithm.num_parts; ++part) {
        const size_t begin = k * part / algorithm.num_parts;
        const size_t end = k * (part + 1) / algorithm.num_parts;
        sum += SumOf(&a[row * k + begin], &b[col * k + begin], end - begin);
      }
      sum *= at.alpha;
      if (at.beta != 0) {
        sum += at.beta * static_cast<const float*>(at.c)[col * static_cast<size_t>(x.c.ld) + row];
      }
      if (bias) sum += static_cast<const float*>(x.desc.bias)[row];
      static_cast<float*>(at.d)[to] = sum;
    }
  }
}

cublasStatus_t CheckCall(const Matmul& x, const Operands& at, const Algorithm& algorithm,
                         size_t workspace_bytes) {
  const uint32_t(&alignment)[4] = algorithm.alignment;
  if (algorithm.type != static_cast<uint32_t>(x.a.type) || algorithm.m != x.d.rows ||
      algorithm.k != x.a.rows || x.d.cols > algorithm.n || !IsUsable(algorithm) ||
      workspace_bytes < algorithm.workspace_bytes ||
      !IsAligned(at.workspace, kWorkspaceAlignment) || at.a == nullptr || at.b == nullptr ||
      at.d == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!IsAligned(at.a, alignment[0]) || !IsAligned(at.b, alignment[1]) ||
      !IsAligned(at.d, alignment[3]) || !RowsAligned(x.a, kLeastAlignment) ||
      !RowsAligned(x.b, kLeastAlignment) || !RowsAligned(x.d, kLeastAlignment)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (x.desc.epilogue == CUBLASLT_EPILOGUE_BIAS &&
      (x.desc.bias == nullptr || !IsAligned(x.desc.bias, kLeastAlignment))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CheckMatmul(x);
}

Algorithm ChooseAlgorithm(const Matmul& x, const cublasLtMatmulPreferenceOpaque_t& preference) {
  Algorithm algorithm;
  algorithm.type = static_cast<uint32_t>(x.a.type);
  algorithm.m = x.d.rows;
  algorithm.n = x.d.cols;
  algorithm.k = x.a.rows;
  std::copy(std::begin(preference.alignment), std::end(preference.alignment),
            std::begin(algorithm.alignment));
  const uint64_t parts = 2;
  const uint64_t bytes = parts * algorithm.m * algorithm.n * sizeof(float);
  if (algorithm.n < kFewColumns && bytes <= preference.workspace_bytes) {
    algorithm.num_parts = parts;
    algorithm.workspace_bytes = bytes;
  }
  return algorithm;
}

bool IsUsable(const Algorithm& algorithm) {
  return *std::min_element(std::begin(algorithm.alignment), std::end(algorithm.alignment)) >=
         kLeastAlignment;
}

}  // namespace llm::cuda_on_cpu
