// Weight formats that kernels read element by element.
#pragma once

#include <optional>

#include "kernels/quant/weight_format.h"
#include "src/tensor/dtype.h"

namespace llm {

// Nothing for formats in blocks.
inline std::optional<DType> ElementType(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return DType::kF32;
    case WeightFormat::kF16:
      return DType::kF16;
    case WeightFormat::kBF16:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

}  // namespace llm
