// The floating-point state of a thread: hosts change rounding and denormal handling, and an answer
// must not depend on it.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace llm {

// Round to nearest, denormals kept, no traps, while it lives; then what was before.
class ScopedFloatState {
 public:
#if defined(__SSE__)
  ScopedFloatState() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~ScopedFloatState() { _mm_setcsr(before_); }
#else
  ScopedFloatState() = default;
#endif
  ScopedFloatState(const ScopedFloatState&) = delete;
  ScopedFloatState& operator=(const ScopedFloatState&) = delete;

 private:
#if defined(__SSE__)
  static constexpr unsigned kDefault = 0x1f80;  // MXCSR after reset
  const unsigned before_;
#endif
};

}  // namespace llm
