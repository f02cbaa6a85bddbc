// getrandom first: unlike std::random_device it cannot throw.
#include "src/engine/random.h"

#include <sys/random.h>

#include <chrono>

namespace llm {

uint64_t DrawRandom() {
  uint64_t value = 0;
  if (getrandom(&value, sizeof(value), 0) == static_cast<ssize_t>(sizeof(value))) return value;
  // No source of randomness (an old kernel, a sandbox): the clock still tells runs apart.
  value = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  value += reinterpret_cast<uintptr_t>(&value);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  return value ^ (value >> 27);
}

}  // namespace llm
