// Stacks for the threads of a block, a set for each kernel that runs; a page that nothing may touch
// before each.
#pragma once

#include <cstddef>
#include <vector>

namespace llm::cuda_on_cpu {

class FiberStacks {
 public:
  static constexpr size_t kStackBytes = 64 * 1024;

  static FiberStacks& Get();
  int Take();  // a set; -1: all are in use
  void Return(int set) { free_sets_.push_back(set); }
  std::byte* Top(int set, int thread) const {
    return base_ + static_cast<size_t>(set) * kSetBytes + static_cast<size_t>(thread + 1) * kStride;
  }
  bool Holds(const void* address) const {
    const auto* p = static_cast<const std::byte*>(address);
    return p >= base_ && p < base_ + kSets * kSetBytes;
  }

 private:
  // As many kernels at once: the guard pages of a set are 2,048 mappings of 65,530.
  static constexpr size_t kSets = 16;
  static constexpr size_t kGuardBytes = 4096;
  static constexpr size_t kStride = kStackBytes + kGuardBytes;
  static constexpr size_t kSetBytes = kStride * 1024;

  FiberStacks();
  std::byte* base_ = nullptr;
  size_t num_made_ = 0;
  std::vector<int> free_sets_;
};

}  // namespace llm::cuda_on_cpu
