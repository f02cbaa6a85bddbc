// The one place that gives mapped memory back.
#include "src/loader/file_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace llm {

FileMapping::~FileMapping() {
  if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

bool FileMapping::Populate(size_t offset, size_t size) const {
#ifdef MADV_POPULATE_READ
  // Other threads' memory calls wait while one of these runs: each is over in some microseconds.
  constexpr uintptr_t kStepBytes = 128 << 10;
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data_ + offset) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(data_ + offset + size);
  for (uintptr_t at = begin; at < end; at += kStepBytes) {
    const size_t step = std::min(kStepBytes, end - at);
    if (madvise(reinterpret_cast<void*>(at), step, MADV_POPULATE_READ) == 0) continue;
    return errno != EFAULT && errno != EHWPOISON;
  }
#endif
  return true;
}

}  // namespace llm
