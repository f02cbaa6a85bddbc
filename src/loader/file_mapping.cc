// The one place that gives mapped memory back.
#include "src/loader/file_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace llm {

FileMapping::~FileMapping() {
  if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

bool FileMapping::Populate(size_t offset, size_t size) const {
#ifdef MADV_POPULATE_READ
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data_ + offset) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(data_ + offset + size);
  return madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ) == 0 ||
         (errno != EFAULT && errno != EHWPOISON);
#else
  return true;
#endif
}

}  // namespace llm
