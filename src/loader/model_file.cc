// A file on disk is opened without blocking, so that a FIFO given as a model is refused instead of
// waited for.
#include "src/loader/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

// Some kernels move at most 2 GiB - 4 KiB in one call; asking for less keeps the loop's arithmetic
// obvious.
constexpr uint64_t kMaxReadBytes = 1u << 30;

absl::Status CheckRange(const ModelFile& file, uint64_t offset, uint64_t size) {
  if (offset <= file.size() && size <= file.size() - offset) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.name(), ": cannot read ", size, " bytes at offset ",
                                          offset, " of ", file.size()));
}

class DiskFile final : public ModelFile {
 public:
  DiskFile(int fd, uint64_t size, std::string name)
      : fd_(fd), size_(size), name_(std::move(name)) {}
  ~DiskFile() override { close(fd_); }

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    if (absl::Status in_file = CheckRange(*this, offset, size); !in_file.ok()) return in_file;
    uint64_t done = 0;
    while (done < size) {
      const size_t part = static_cast<size_t>(std::min(size - done, kMaxReadBytes));
      const ssize_t got =
          pread(fd_, static_cast<char*>(dst) + done, part, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return absl::ErrnoToStatus(
            errno, absl::StrCat(name_, ": reading ", size, " bytes at offset ", offset));
      }
      if (got == 0) {
        return absl::DataLossError(absl::StrCat(name_, ": reading ", size, " bytes at offset ",
                                                offset, ": the file has become shorter"));
      }
      done += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }

 private:
  const int fd_;
  const uint64_t size_;  // when it was opened
  const std::string name_;
};

class MemoryFile final : public ModelFile {
 public:
  MemoryFile(const void* data, uint64_t size, std::string name)
      : data_(static_cast<const char*>(data)), size_(size), name_(std::move(name)) {}

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    if (absl::Status in_file = CheckRange(*this, offset, size); !in_file.ok()) return in_file;
    if (size > 0) std::memcpy(dst, data_ + offset, static_cast<size_t>(size));
    return absl::OkStatus();
  }

 private:
  const char* const data_;
  const uint64_t size_;
  const std::string name_;
};

absl::Status OpenError(int error, const std::string& path) {
  const std::string message = absl::StrCat("cannot open ", path);
  if (error == ENOTDIR) return absl::NotFoundError(absl::StrCat(message, ": not a directory"));
  return absl::ErrnoToStatus(error, message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelFile(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("cannot open a path with a NUL character in it");
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenError(errno, path);
  struct stat info;
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return OpenError(error, path);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot open ", path, ": ", S_ISDIR(info.st_mode) ? "a directory" : "not a regular file"));
  }
  return std::make_unique<DiskFile>(fd, static_cast<uint64_t>(info.st_size), path);
}

std::unique_ptr<ModelFile> MemoryModelFile(const void* data, uint64_t size, std::string name) {
  return std::make_unique<MemoryFile>(data, size, std::move(name));
}

}  // namespace llm
