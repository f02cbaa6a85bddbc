// Memory of the emulated devices: allocations with exact bounds, closed to the host's code.
//
// Pages can be touched only while a Window is open, that is while a device works: host code that
// follows a device pointer crashes as it would with a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <map>

namespace llm::cuda_on_cpu {

inline constexpr int kMaxDevices = 4;

class DeviceMemory {
 public:
  static DeviceMemory& Get();

  // Aligned to 256 and filled with 0xff; null when there is no room.
  void* Allocate(size_t bytes, int device = 0);
  bool Free(void* memory);  // false when it is no allocation
  void* AllocatePinned(size_t bytes);
  bool FreePinned(void* memory);

  bool IsDevice(const void* address) const { return DeviceOf(address) >= 0; }
  int DeviceOf(const void* address) const;  // -1: the host's memory
  // Whether all bytes lie in one allocation, of a device or pinned: what kernels may touch, where
  // their device reaches that one.
  bool Contains(const void* address, size_t bytes) const;
  // Kernels of a device reach its own memory, and that of peers that it was given access to.
  bool Reaches(int device, const void* address) const;
  bool has_peer(int device, int peer) const { return peers_[Index(device)][Index(peer)]; }
  void set_peer(int device, int peer, bool access) { peers_[Index(device)][Index(peer)] = access; }
  void ClosePeers() { peers_ = {}; }

  size_t allocated_bytes() const;  // on all devices
  size_t allocated_bytes(int device) const { return arenas_[Index(device)].allocated_bytes; }
  size_t pinned_bytes() const { return pinned_bytes_; }
  size_t limit_bytes() const { return limit_bytes_; }  // of each device
  void set_limit_bytes(size_t bytes) { limit_bytes_ = bytes; }

  class Window {
   public:
    Window() { Get().Open(); }
    ~Window() { Get().Close(); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
  };

 private:
  struct Arena {
    std::byte* base = nullptr;
    size_t end = 0;  // pages below it have been used
    size_t allocated_bytes = 0;
    std::map<size_t, size_t> blocks;  // offset -> bytes
  };

  DeviceMemory();
  static size_t Index(int device) { return static_cast<size_t>(device); }
  void Open();
  void Close();
  void Protect(int access) const;

  std::array<Arena, kMaxDevices> arenas_;
  std::array<std::array<bool, kMaxDevices>, kMaxDevices> peers_ = {};
  int open_windows_ = 0;
  size_t pinned_bytes_ = 0;
  size_t limit_bytes_ = 0;
  std::map<const std::byte*, size_t> pinned_;  // address -> bytes
};

}  // namespace llm::cuda_on_cpu
