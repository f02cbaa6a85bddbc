// Pages cost nothing until a thread's stack grows into them.
#include "tests/cuda_on_cpu/fiber_stacks.h"

#include <sys/mman.h>

#include <cstdlib>

namespace llm::cuda_on_cpu {

FiberStacks& FiberStacks::Get() {
  static FiberStacks stacks;
  return stacks;
}

FiberStacks::FiberStacks() {
  void* memory = mmap(nullptr, kSets * kSetBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(memory);
}

int FiberStacks::Take() {
  if (!free_sets_.empty()) {
    const int set = free_sets_.back();
    free_sets_.pop_back();
    return set;
  }
  if (num_made_ == kSets) return -1;
  std::byte* begin = base_ + num_made_ * kSetBytes;
  for (size_t offset = 0; offset < kSetBytes; offset += kStride) {
    if (mprotect(begin + offset, kGuardBytes, PROT_NONE) != 0) std::abort();
  }
  return static_cast<int>(num_made_++);
}

}  // namespace llm::cuda_on_cpu
