// Buffer owns memory from an Allocator; Allocator counts what it hands out and never exceeds its
// limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llm {

class Device;

// Host memory aligned to 64 bytes. Thread-safe. `hooks` replace the C allocator when the host gave
// its own.
class Allocator {
 public:
  struct Hooks {
    void* (*allocate)(void* user_data, size_t bytes, size_t alignment) = nullptr;
    void (*deallocate)(void* user_data, void* memory, size_t bytes) = nullptr;
    void* user_data = nullptr;
  };

  Allocator() = default;
  explicit Allocator(Hooks hooks) : hooks_(hooks) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Hooks and limit (0: none) are set before the first allocation. What a hook throws is caught:
  // an allocation fails with it.
  void set_hooks(const Hooks& hooks) { hooks_ = hooks; }
  void set_limit_bytes(size_t limit_bytes) { limit_bytes_ = limit_bytes; }
  size_t allocated_bytes() const { return allocated_bytes_.load(std::memory_order_relaxed); }

  // Null on failure. `bytes` > 0.
  void* Allocate(size_t bytes);
  // The same, with `misaligned` set when it failed because a hook's memory is not aligned to 64.
  void* Allocate(size_t bytes, bool* misaligned);
  void Deallocate(void* memory, size_t bytes);
  // Counts memory that comes from elsewhere; false, counting nothing, beyond the limit.
  bool Reserve(size_t bytes);
  void Unreserve(size_t bytes) { allocated_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Whether memory of that size comes as zeros, of which a page costs nothing until it is written.
  bool GivesZeros(size_t bytes) const;

 private:
  void* AskHook(size_t bytes, bool* misaligned) const;
  void Release(void* memory, size_t bytes) const;

  Hooks hooks_;
  size_t limit_bytes_ = 0;
  std::atomic<size_t> allocated_bytes_{0};
};

// Movable owner of `size` bytes. The allocator outlives it.
class Buffer {
 public:
  Buffer() = default;
  // RESOURCE_EXHAUSTED, naming `what` and the size, when the allocator refuses;
  // INVALID_ARGUMENT when the host's memory is misaligned. Contents are undefined. size may be 0.
  static absl::StatusOr<Buffer> Allocate(Allocator* allocator, size_t size, absl::string_view what);
  // The same, all zeros.
  static absl::StatusOr<Buffer> AllocateZeroed(Allocator* allocator, size_t size,
                                               absl::string_view what);
  // Of a device's memory, counted by the allocator; the device outlives the buffer. Null: as
  // Allocate.
  static absl::StatusOr<Buffer> AllocateOn(Device* device, Allocator* allocator, size_t size,
                                           absl::string_view what);
  // Of pinned host memory, likewise.
  static absl::StatusOr<Buffer> AllocatePinned(Device* device, Allocator* allocator, size_t size,
                                               absl::string_view what);
  ~Buffer() { Reset(); }
  Buffer(Buffer&& other) noexcept
      : allocator_(other.allocator_),
        device_(other.device_),
        pinned_(other.pinned_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      Reset();
      allocator_ = other.allocator_;
      device_ = other.device_;
      pinned_ = other.pinned_;
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  template <typename T>
  T* As() const {
    return reinterpret_cast<T*>(data_);
  }
  void Reset();
  // For what is filled at once and read whole, like weights: fewer, larger pages where the system
  // has them. A host's own memory is left as it is.
  void AdviseHugePages() const;

 private:
  static absl::StatusOr<Buffer> AskDevice(Device* device, bool pinned, Allocator* allocator,
                                          size_t size, absl::string_view what);

  Allocator* allocator_ = nullptr;
  Device* device_ = nullptr;  // null: the allocator's memory
  bool pinned_ = false;       // the device's host memory
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace llm
