// What a model's weights become when it is loaded.
#pragma once

#include <optional>

#include "kernels/quant/encode.h"

namespace llm {

enum class Pruning {
  kNone,
  kTwoOfFour,  // of four inputs in a row the two smallest weights of an output become 0
  kMagnitude,  // of each output's weights the smallest part becomes 0
};

// Without a value: as the file has them.
struct QuantizeOptions {
  std::optional<Quantization> linear = std::nullopt;
  std::optional<Quantization> experts = std::nullopt;
  std::optional<Quantization> embedding = std::nullopt;
  std::optional<Quantization> head = std::nullopt;
  bool requantize = false;           // also weights that the file has in low bits
  Pruning pruning = Pruning::kNone;  // of linear layers and experts
  float pruned_part = 0;             // kMagnitude

  bool Any() const {
    return linear || experts || embedding || head || requantize || pruning != Pruning::kNone;
  }
};

}  // namespace llm
