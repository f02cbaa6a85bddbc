// Measures how deep the machine stack has grown since a point.
#pragma once

#include <cstdint>

namespace llm::jinja {

// Counting levels bounds the stack only as well as the size of a level is known, and sanitizers
// make frames several times larger. This is the second limit behind the counts: ordinary builds
// meet the counts first.
class StackMeter {
 public:
  StackMeter() : base_(Here()) {}

  // 2,560 bytes for each of `max_depth` levels: 320 KiB for 128, which leaves a 512 KiB stack room
  // for the leaves.
  bool Within(uint32_t max_depth) const {
    const uintptr_t here = Here();
    return (here < base_ ? base_ - here : here - base_) <= uint64_t{max_depth} * 2560;
  }

 private:
  static uintptr_t Here() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

  uintptr_t base_;
};

}  // namespace llm::jinja
