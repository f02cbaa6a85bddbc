// Cuts one buffer into arrays. Run once without memory it counts the bytes, run again with memory
// it gives the same layout.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/base/math.h"

namespace llm {

// Sizes come from validated configs and options and stay far below 2^63.
class Arena {
 public:
  // `base` is 64-byte aligned, or null to count only: then Take returns null.
  explicit Arena(std::byte* base) : base_(base) {}

  // An array of `count` elements, 64-byte aligned.
  template <typename T>
  T* Take(int64_t count) {
    T* result = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + offset_);
    offset_ += RoundUp(static_cast<size_t>(count) * sizeof(T), size_t{64});
    peak_ = std::max(peak_, offset_);
    return result;
  }

  // Arrays taken after Rewind lie over those taken since Mark: for phases that do not overlap in
  // time.
  size_t Mark() const { return offset_; }
  void Rewind(size_t mark) { offset_ = mark; }

  size_t peak_bytes() const { return peak_; }

 private:
  std::byte* base_;
  size_t offset_ = 0;
  size_t peak_ = 0;
};

}  // namespace llm
