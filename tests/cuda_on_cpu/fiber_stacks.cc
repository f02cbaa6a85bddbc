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
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(memory);
  for (size_t offset = 0; offset < kBytes; offset += kStride) {
    if (mprotect(base_ + offset, kGuardBytes, PROT_NONE) != 0) std::abort();
  }
}

}  // namespace llm::cuda_on_cpu
