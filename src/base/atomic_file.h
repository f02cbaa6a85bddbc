// A file that appears under its name whole or not at all.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llm {

// Written beside its place under another name, which Commit renames and the destructor removes.
// Errors name the path: NOT_FOUND, PERMISSION_DENIED, ...; RESOURCE_EXHAUSTED when the disk, a
// quota or the process's limit for files is full; INVALID_ARGUMENT: something else than a file
// stands there.
class AtomicFile {
 public:
  // `mode`: of the file, less the process's umask.
  static absl::StatusOr<AtomicFile> Create(std::string path, unsigned mode = 0666);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  absl::Status Write(const void* data, size_t size);
  // On disk, then under its name, in the place of a file that was there.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  absl::Status Error(int error) const;

  std::string path_;
  std::string temporary_;  // empty: it was renamed
  int fd_;                 // -1: closed, or moved from
};

}  // namespace llm
