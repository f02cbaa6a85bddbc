// Memory of the emulated devices: allocations with exact bounds, closed to the host's code.
//
// Pages can be touched only while a Window is open, that is while the device works: host code that
// follows a device pointer crashes as it would with a GPU.
#pragma once

#include <cstddef>
#include <map>

namespace llm::cuda_on_cpu {

class DeviceMemory {
 public:
  static DeviceMemory& Get();

  void* Allocate(size_t bytes);  // aligned to 256 and filled with 0xff; null when there is no room
  bool Free(void* memory);       // false when it is no allocation
  void* AllocatePinned(size_t bytes);
  bool FreePinned(void* memory);

  bool IsDevice(const void* address) const;
  // Whether all bytes lie in one allocation, of a device or pinned: what kernels may touch.
  bool Contains(const void* address, size_t bytes) const;
  size_t allocated_bytes() const { return allocated_bytes_; }
  size_t pinned_bytes() const { return pinned_bytes_; }
  size_t limit_bytes() const { return limit_bytes_; }
  void set_limit_bytes(size_t bytes) { limit_bytes_ = bytes; }

  class Window {
   public:
    Window() { Get().Open(); }
    ~Window() { Get().Close(); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
  };

 private:
  DeviceMemory();
  void Open();
  void Close();

  std::byte* arena_ = nullptr;
  size_t end_ = 0;  // pages below it have been used
  int open_windows_ = 0;
  size_t allocated_bytes_ = 0;
  size_t pinned_bytes_ = 0;
  size_t limit_bytes_ = 0;
  std::map<size_t, size_t> blocks_;            // offset in the arena -> bytes
  std::map<const std::byte*, size_t> pinned_;  // address -> bytes
};

}  // namespace llm::cuda_on_cpu
