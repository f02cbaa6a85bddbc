// A file without a name, for what memory has no room for: it is gone with the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llm {

// Readable by this user alone. Errors name the folder; RESOURCE_EXHAUSTED when the disk, a quota or
// the process's limit for files is full.
class ScratchFile {
 public:
  static absl::StatusOr<ScratchFile> Create(std::string folder);
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;

  absl::Status Write(uint64_t offset, const void* data, size_t size);
  // DATA_LOSS where the file is shorter.
  absl::Status Read(uint64_t offset, void* data, size_t size) const;
  int fd() const { return fd_; }  // for tests

 private:
  ScratchFile(std::string folder, int fd);
  absl::Status Error(const char* what, int error) const;

  std::string folder_;
  int fd_;
};

}  // namespace llm
