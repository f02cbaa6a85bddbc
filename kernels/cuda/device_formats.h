// Weight formats by how kernels read them: element by element, or in blocks.
#pragma once

#include <optional>

#include "kernels/cuda/device_ops.h"
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

// Nothing for formats that no kernel decodes.
inline std::optional<BlockFormat> BlockFormatOf(WeightFormat format) {
  switch (format) {
#define LLM_BLOCK_FORMAT(name, header) \
  case WeightFormat::k##name:          \
    return BlockFormat::k##name;
#include "kernels/cuda/block_formats.def"
#undef LLM_BLOCK_FORMAT
    default:
      return std::nullopt;
  }
}

}  // namespace llm
