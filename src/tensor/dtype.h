// Element types of tensors and KV storage. Block-quantised weight formats are kernels/quant's
// WeightFormat, not these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

enum class DType : int32_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kF8E4M3 = 3,
  kI8 = 4,
  kI32 = 5,
  kI4 = 6,  // keys and values alone
};

constexpr size_t DTypeBits(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 32;
    case DType::kF16:
    case DType::kBF16:
      return 16;
    case DType::kF8E4M3:
    case DType::kI8:
      return 8;
    case DType::kI4:
      return 4;
  }
  return 0;
}

// REQUIRES: whole bytes.
constexpr size_t DTypeBytes(DType dtype) { return DTypeBits(dtype) / 8; }

constexpr const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF8E4M3:
      return "fp8_e4m3";
    case DType::kI8:
      return "int8";
    case DType::kI32:
      return "i32";
    case DType::kI4:
      return "int4";
  }
  return "unknown";
}

}  // namespace llm
