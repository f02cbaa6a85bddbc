// Bounds that may be absent.
#pragma once

#include <algorithm>
#include <cstdint>

namespace llm {

// The tighter of two, of which 0 is none.
inline int64_t TighterBound(int64_t a, int64_t b) {
  if (a == 0) return b;
  return b == 0 ? a : std::min(a, b);
}

}  // namespace llm
