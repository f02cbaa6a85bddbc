// Part of a file in memory, shared with every process that maps it, as long as the object lives.
#pragma once

#include <cstddef>
#include <utility>

namespace llm {

// Whoever makes the file shorter kills the process that reads what is gone: only for files whose
// writers are trusted.
class FileMapping {
 public:
  FileMapping() = default;
  // Takes over [base, base + mapped_bytes) from mmap; the part wanted begins at `data`.
  FileMapping(void* base, size_t mapped_bytes, const std::byte* data)
      : base_(base), mapped_bytes_(mapped_bytes), data_(data) {}
  ~FileMapping();
  FileMapping(FileMapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  FileMapping& operator=(FileMapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(data_, other.data_);
    return *this;
  }

  const std::byte* data() const { return data_; }  // null: nothing is mapped
  // Reads bytes [offset, offset + size) of the part wanted, and has no page of them missing later.
  // False: they are not in the file any more. On systems that cannot, later touches read.
  bool Populate(size_t offset, size_t size) const;

 private:
  void* base_ = nullptr;
  size_t mapped_bytes_ = 0;
  const std::byte* data_ = nullptr;
};

}  // namespace llm
