// Stacks for the threads of a block, kept between blocks; a page that nothing may touch before
// each.
#pragma once

#include <cstddef>

namespace llm::cuda_on_cpu {

class FiberStacks {
 public:
  static constexpr size_t kStackBytes = 64 * 1024;

  static FiberStacks& Get();
  std::byte* Top(int thread) const { return base_ + static_cast<size_t>(thread + 1) * kStride; }
  bool Holds(const void* address) const {
    const auto* p = static_cast<const std::byte*>(address);
    return p >= base_ && p < base_ + kBytes;
  }

 private:
  static constexpr size_t kGuardBytes = 4096;
  static constexpr size_t kStride = kStackBytes + kGuardBytes;
  static constexpr size_t kBytes = kStride * 1024;

  FiberStacks();
  std::byte* base_ = nullptr;
};

}  // namespace llm::cuda_on_cpu
