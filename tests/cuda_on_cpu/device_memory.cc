// One reserved range of addresses; an allocation is followed by at least 256 bytes of nothing.
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
  void* arena =
      mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) std::abort();
  arena_ = static_cast<std::byte*>(arena);
  limit_bytes_ = kArenaBytes / 2;
}

void DeviceMemory::Open() {
  if (++open_windows_ > 1 || end_ == 0) return;
  if (mprotect(arena_, end_, PROT_READ | PROT_WRITE) != 0) std::abort();
}

void DeviceMemory::Close() {
  if (--open_windows_ > 0 || end_ == 0) return;
  if (mprotect(arena_, end_, PROT_NONE) != 0) std::abort();
}

void* DeviceMemory::Allocate(size_t bytes) {
  if (bytes == 0 || bytes > limit_bytes_ || allocated_bytes_ > limit_bytes_ - bytes) return nullptr;
  const size_t needed = (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  size_t offset = 0;
  for (const auto& [begin, size] : blocks_) {  // the first gap that is large enough
    if (begin - offset >= needed) break;
    offset = (begin + size + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  }
  if (offset + needed > kArenaBytes) return nullptr;
  blocks_[offset] = bytes;
  allocated_bytes_ += bytes;
  const size_t end = (offset + needed + kPage - 1) / kPage * kPage;
  if (end > end_) {
    if (mprotect(arena_, end, open_windows_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
      std::abort();
    }
    end_ = end;
  }
  const Window window;
  std::memset(arena_ + offset, 0xff, bytes);
  return arena_ + offset;
}

bool DeviceMemory::Free(void* memory) {
  if (!IsDevice(memory)) return false;
  const auto block = blocks_.find(static_cast<size_t>(static_cast<std::byte*>(memory) - arena_));
  if (block == blocks_.end()) return false;
  allocated_bytes_ -= block->second;
  blocks_.erase(block);
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

bool DeviceMemory::IsDevice(const void* address) const {
  const auto* p = static_cast<const std::byte*>(address);
  return p >= arena_ && p < arena_ + kArenaBytes;
}

bool DeviceMemory::Contains(const void* address, size_t bytes) const {
  const auto* p = static_cast<const std::byte*>(address);
  if (IsDevice(p)) {
    const auto offset = static_cast<size_t>(p - arena_);
    auto block = blocks_.upper_bound(offset);
    if (block == blocks_.begin()) return false;
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
