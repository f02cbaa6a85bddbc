// Bytes that an Allocator counts for what something else will take.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/tensor/buffer.h"

namespace llm {

// Movable. The allocator outlives it.
class ReservedBytes {
 public:
  ReservedBytes() = default;
  // RESOURCE_EXHAUSTED, naming `what` and the size, beyond the allocator's limit.
  static absl::StatusOr<ReservedBytes> Reserve(Allocator* allocator, size_t size,
                                               absl::string_view what) {
    if (!allocator->Reserve(size)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(what, ": no room for ", size, " bytes under the limit"));
    }
    return ReservedBytes(allocator, size);
  }
  ~ReservedBytes() { Reset(); }
  ReservedBytes(ReservedBytes&& other) noexcept
      : allocator_(std::exchange(other.allocator_, nullptr)), size_(other.size_) {}
  ReservedBytes& operator=(ReservedBytes&& other) noexcept {
    if (this != &other) {
      Reset();
      allocator_ = std::exchange(other.allocator_, nullptr);
      size_ = other.size_;
    }
    return *this;
  }

 private:
  ReservedBytes(Allocator* allocator, size_t size) : allocator_(allocator), size_(size) {}
  void Reset() {
    if (allocator_ != nullptr) allocator_->Unreserve(size_);
    allocator_ = nullptr;
  }

  Allocator* allocator_ = nullptr;
  size_t size_ = 0;
};

}  // namespace llm
