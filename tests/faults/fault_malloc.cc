// glibc offers its own functions under other names, so that these can stand in front of them.
#include "tests/faults/fault_malloc.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}

namespace {

std::atomic<bool> armed{false};
std::atomic<int64_t> seen{0};
std::atomic<int64_t> failed{0};
std::atomic<int64_t> live{0};
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> most_bytes{0};
std::atomic<int64_t> fail_begin{0};
std::atomic<int64_t> fail_end{0};

bool ShouldFail() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const int64_t number = seen.fetch_add(1);
  if (number < fail_begin.load() || number >= fail_end.load()) return false;
  failed.fetch_add(1);
  errno = ENOMEM;
  return true;
}

void AddBytes(int64_t bytes) {
  const int64_t now = live_bytes.fetch_add(bytes) + bytes;
  int64_t most = most_bytes.load();
  while (now > most && !most_bytes.compare_exchange_weak(most, now)) {
  }
}

int64_t SizeOf(void* memory) { return static_cast<int64_t>(malloc_usable_size(memory)); }

void* Count(void* memory) {
  if (memory == nullptr) return nullptr;
  live.fetch_add(1, std::memory_order_relaxed);
  AddBytes(SizeOf(memory));
  return memory;
}

void Discount(void* memory) {
  if (memory == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  AddBytes(-SizeOf(memory));
}

}  // namespace

extern "C" {

void* malloc(size_t size) { return ShouldFail() ? nullptr : Count(__libc_malloc(size)); }

void* calloc(size_t count, size_t size) {
  return ShouldFail() ? nullptr : Count(__libc_calloc(count, size));
}

void* realloc(void* memory, size_t size) {
  if (ShouldFail()) return nullptr;
  const int64_t old_bytes = SizeOf(memory);
  void* const moved = __libc_realloc(memory, size);
  if (memory == nullptr) return Count(moved);
  if (size == 0) live.fetch_sub(1, std::memory_order_relaxed);
  if (moved != nullptr || size == 0) AddBytes(SizeOf(moved) - old_bytes);
  return moved;
}

void* memalign(size_t alignment, size_t size) {
  return ShouldFail() ? nullptr : Count(__libc_memalign(alignment, size));
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

void free(void* memory) {
  Discount(memory);
  __libc_free(memory);
}

}  // extern "C"

namespace llm {

ScopedAllocationFault::ScopedAllocationFault(int64_t first, int64_t length) {
  seen.store(0);
  failed.store(0);
  fail_begin.store(first);
  fail_end.store(first + length);
  armed.store(true);
}

ScopedAllocationFault::~ScopedAllocationFault() { armed.store(false); }

int64_t NumAllocationsSeen() { return seen.load(); }
int64_t NumAllocationsFailed() { return failed.load(); }
int64_t NumLiveAllocations() { return live.load(); }
int64_t NumLiveBytes() { return live_bytes.load(); }

int64_t TakeMostLiveBytes() { return most_bytes.exchange(live_bytes.load()); }

}  // namespace llm
