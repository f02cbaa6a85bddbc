// A reserved range of addresses for each device; an allocation is followed by at least 256 bytes of
// nothing.
#include "tests/cuda_on_cpu/device_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace llm::cuda_on_cpu {
namespace {

constexpr size_t kArenaBytes = size_t{4} << 30;
constexpr size_t kAlignment = 256;
constexpr size_t kPage = 4096;

}  // namespace

DeviceMemory& DeviceMemory::Get() {
  static DeviceMemory memory;
  return memory;
}

DeviceMemory::DeviceMemory() {
  void* memory = mmap(nullptr, kMaxDevices * kArenaBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* base = static_cast<std::byte*>(memory);
  for (Arena& arena : arenas_) {
    arena.base = base;
    base += kArenaBytes;
  }
  limit_bytes_ = kArenaBytes / 2;
}

void DeviceMemory::Protect(int access) const {
  for (const Arena& arena : arenas_) {
    if (arena.end > 0 && mprotect(arena.base, arena.end, access) != 0) std::abort();
  }
}

void DeviceMemory::Open() {
  if (++open_windows_ == 1) Protect(PROT_READ | PROT_WRITE);
}

void DeviceMemory::Close() {
  if (--open_windows_ == 0) Protect(PROT_NONE);
}

size_t DeviceMemory::allocated_bytes() const {
  size_t sum = 0;
  for (const Arena& arena : arenas_) sum += arena.allocated_bytes;
  return sum;
}

void* DeviceMemory::Allocate(size_t bytes, int device) {
  Arena& arena = arenas_[Index(device)];
  if (bytes == 0 || bytes > limit_bytes_ || arena.allocated_bytes > limit_bytes_ - bytes) {
    return nullptr;
  }
  const size_t needed = (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  size_t offset = 0;
  for (const auto& [begin, size] : arena.blocks) {  // the first gap that is large enough
    if (begin - offset >= needed) break;
    offset = (begin + size + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  }
  if (offset + needed > kArenaBytes) return nullptr;
  arena.blocks[offset] = bytes;
  arena.allocated_bytes += bytes;
  const size_t end = (offset + needed + kPage - 1) / kPage * kPage;
  if (end > arena.end) {
    const int access = open_windows_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (mprotect(arena.base, end, access) != 0) std::abort();
    arena.end = end;
  }
  const Window window;
  std::memset(arena.base + offset, 0xff, bytes);
  return arena.base + offset;
}

bool DeviceMemory::Free(void* memory) {
  const int device = DeviceOf(memory);
  if (device < 0) return false;
  Arena& arena = arenas_[Index(device)];
  const auto block =
      arena.blocks.find(static_cast<size_t>(static_cast<std::byte*>(memory) - arena.base));
  if (block == arena.blocks.end()) return false;
  arena.allocated_bytes -= block->second;
  arena.blocks.erase(block);
  return true;
}

void* DeviceMemory::AllocatePinned(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0xff, bytes);
  pinned_[static_cast<const std::byte*>(memory)] = bytes;
  pinned_bytes_ += bytes;
  return memory;
}

bool DeviceMemory::FreePinned(void* memory) {
  const auto range = pinned_.find(static_cast<const std::byte*>(memory));
  if (range == pinned_.end()) return false;
  pinned_bytes_ -= range->second;
  pinned_.erase(range);
  std::free(memory);
  return true;
}

int DeviceMemory::DeviceOf(const void* address) const {
  const auto* p = static_cast<const std::byte*>(address);
  const std::byte* base = arenas_[0].base;
  if (p < base || p >= base + kMaxDevices * kArenaBytes) return -1;
  return static_cast<int>(static_cast<size_t>(p - base) / kArenaBytes);
}

bool DeviceMemory::Reaches(int device, const void* address) const {
  const int owner = DeviceOf(address);
  return owner < 0 || owner == device || has_peer(device, owner);
}

bool DeviceMemory::Contains(const void* address, size_t bytes) const {
  const auto* p = static_cast<const std::byte*>(address);
  const int device = DeviceOf(p);
  if (device >= 0) {
    const Arena& arena = arenas_[Index(device)];
    const auto offset = static_cast<size_t>(p - arena.base);
    auto block = arena.blocks.upper_bound(offset);
    if (block == arena.blocks.begin()) return false;
    --block;
    return offset - block->first <= block->second &&
           bytes <= block->second - (offset - block->first);
  }
  auto range = pinned_.upper_bound(p);
  if (range == pinned_.begin()) return false;
  --range;
  const auto offset = static_cast<size_t>(p - range->first);
  return offset <= range->second && bytes <= range->second - offset;
}

}  // namespace llm::cuda_on_cpu
