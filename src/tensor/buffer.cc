// The limit is enforced by reserving the bytes in the counter before asking for the memory.
#include "src/tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/tensor/device.h"

namespace llm {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and one AVX-512 register
// From here on memory comes from the system and goes back to it, in pages that are zero.
constexpr size_t kMapBytes = size_t{4} << 20;

void* MapMemory(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* AllocateHere(size_t bytes) {
  return bytes >= kMapBytes ? MapMemory(bytes)
                            : std::aligned_alloc(kAlignment, RoundUp(bytes, kAlignment));
}

}  // namespace

void* Allocator::Allocate(size_t bytes) {
  bool misaligned = false;
  return Allocate(bytes, &misaligned);
}

bool Allocator::Reserve(size_t bytes) {
  const size_t before = allocated_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (limit_bytes_ == 0 || (before <= limit_bytes_ && bytes <= limit_bytes_ - before)) return true;
  Unreserve(bytes);
  return false;
}

void* Allocator::Allocate(size_t bytes, bool* misaligned) {
  if (!Reserve(bytes)) return nullptr;
  void* memory = nullptr;
  if (bytes <= SIZE_MAX - kAlignment) {
    memory = hooks_.allocate != nullptr ? AskHook(bytes, misaligned) : AllocateHere(bytes);
  }
  if (memory == nullptr) Unreserve(bytes);
  return memory;
}

void* Allocator::AskHook(size_t bytes, bool* misaligned) const {
  void* memory = nullptr;
  try {
    memory = hooks_.allocate(hooks_.user_data, bytes, kAlignment);
  } catch (...) {
    return nullptr;
  }
  *misaligned = reinterpret_cast<uintptr_t>(memory) % kAlignment != 0;
  if (!*misaligned) return memory;
  Release(memory, bytes);
  return nullptr;
}

// Runs in destructors, where nothing may be thrown.
void Allocator::Release(void* memory, size_t bytes) const {
  try {
    hooks_.deallocate(hooks_.user_data, memory, bytes);
  } catch (...) {
  }
}

void Allocator::Deallocate(void* memory, size_t bytes) {
  if (memory == nullptr) return;
  if (hooks_.deallocate != nullptr) {
    Release(memory, bytes);
  } else if (bytes >= kMapBytes) {
    munmap(memory, bytes);
  } else {
    std::free(memory);
  }
  allocated_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

absl::StatusOr<Buffer> Buffer::Allocate(Allocator* allocator, size_t size, absl::string_view what) {
  Buffer buffer;
  if (size == 0) return buffer;
  bool misaligned = false;
  void* memory = allocator->Allocate(size, &misaligned);
  if (misaligned) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": the host's allocator returned memory that is not aligned to ", kAlignment));
  }
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": cannot allocate ", size, " bytes (",
                                                     allocator->allocated_bytes(),
                                                     " already allocated)"));
  }
  buffer.allocator_ = allocator;
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_ = size;
  return buffer;
}

absl::StatusOr<Buffer> Buffer::AllocateOn(Device* device, Allocator* allocator, size_t size,
                                          absl::string_view what) {
  if (device == nullptr) return Allocate(allocator, size, what);
  return AskDevice(device, /*pinned=*/false, allocator, size, what);
}

absl::StatusOr<Buffer> Buffer::AllocatePinned(Device* device, Allocator* allocator, size_t size,
                                              absl::string_view what) {
  return AskDevice(device, /*pinned=*/true, allocator, size, what);
}

absl::StatusOr<Buffer> Buffer::AskDevice(Device* device, bool pinned, Allocator* allocator,
                                         size_t size, absl::string_view what) {
  Buffer buffer;
  if (size == 0) return buffer;
  if (!allocator->Reserve(size)) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": the limit leaves no room for ", size,
                                                     " bytes (", allocator->allocated_bytes(),
                                                     " already allocated)"));
  }
  const absl::StatusOr<std::byte*> memory =
      pinned ? device->AllocatePinned(size, what) : device->Allocate(size, what);
  if (!memory.ok()) {
    allocator->Unreserve(size);
    return memory.status();
  }
  buffer.allocator_ = allocator;
  buffer.device_ = device;
  buffer.pinned_ = pinned;
  buffer.data_ = *memory;
  buffer.size_ = size;
  return buffer;
}

bool Allocator::GivesZeros(size_t bytes) const {
  return hooks_.allocate == nullptr && bytes >= kMapBytes;
}

absl::StatusOr<Buffer> Buffer::AllocateZeroed(Allocator* allocator, size_t size,
                                              absl::string_view what) {
  absl::StatusOr<Buffer> buffer = Allocate(allocator, size, what);
  if (buffer.ok() && size > 0 && !allocator->GivesZeros(size)) {
    std::memset(buffer->data(), 0, size);
  }
  return buffer;
}

void Buffer::AdviseHugePages() const {
  if (data_ == nullptr || device_ != nullptr || !allocator_->GivesZeros(size_)) return;
  madvise(data_, size_, MADV_HUGEPAGE);  // small pages are all that a failure costs
}

void Buffer::Reset() {
  if (data_ != nullptr && device_ == nullptr) allocator_->Deallocate(data_, size_);
  if (data_ != nullptr && device_ != nullptr) {
    pinned_ ? device_->FreePinned(data_) : device_->Free(data_);
    allocator_->Unreserve(size_);
  }
  data_ = nullptr;
  size_ = 0;
}

}  // namespace llm
