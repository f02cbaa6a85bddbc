// In a file of its own: the compiler must not see both ends of the pair in one function.
#include "tests/engine/failing_new.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int allocations_left = -1;  // negative: off
thread_local int failures_left = 0;

bool ShouldFail() {
  if (allocations_left < 0) return false;
  if (allocations_left > 0) {
    --allocations_left;
    return false;
  }
  if (failures_left-- > 0) return true;
  allocations_left = -1;
  return false;
}

}  // namespace

namespace llm {

void FailAllocations(int allocations, int length) {
  failures_left = length;
  allocations_left = allocations;
}

bool StopFailing() {
  const bool not_begun = allocations_left > 0;
  allocations_left = -1;
  return not_begun;
}

}  // namespace llm

void* operator new(size_t size) {
  void* memory = ShouldFail() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
