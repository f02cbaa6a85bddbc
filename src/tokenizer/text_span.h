// Parts of a text, in bytes.
#pragma once

#include <cstddef>
#include <vector>

namespace llm {

struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
};

// In order, not empty, and neither overlapping nor touching.
using TextSpans = std::vector<TextSpan>;

}  // namespace llm
