// A temporary name is this process's own: it is created, never opened.
#include "src/base/atomic_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/output_file.h"

namespace llm {
namespace {

constexpr int kAttempts = 16;  // names of 64 random bits: one is enough
constexpr size_t kMaxWriteBytes = size_t{1} << 30;

absl::Status WriteError(int error, const std::string& path) {
  const std::string message = absl::StrCat("cannot write ", path);
  const absl::Status status = absl::ErrnoToStatus(error, message);
  if (error != EFBIG && error != EDQUOT) return status;
  return absl::ResourceExhaustedError(status.message());
}

}  // namespace

absl::StatusOr<AtomicFile> AtomicFile::Create(std::string path, unsigned mode) {
  // A rename would put a file in the place of a device or a pipe.
  struct stat there;
  if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": something else than a file stands there"));
  }
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  int error = EEXIST;
  for (int attempt = 0; attempt < kAttempts && error == EEXIST; ++attempt) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != static_cast<ssize_t>(sizeof(random))) continue;
    std::string temporary =
        absl::StrCat(folder, ".inlay-", absl::Hex(random, absl::kZeroPad16), ".tmp");
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) return AtomicFile(std::move(path), std::move(temporary), fd);
    error = errno;
  }
  return WriteError(error, path);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status AtomicFile::Error(int error) const { return WriteError(error, path_); }

absl::Status AtomicFile::Write(const void* data, size_t size) {
  const ScopedQuietWrites quiet;
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = write(fd_, from, std::min(size, kMaxWriteBytes));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return Error(errno);
    if (done == 0) return Error(EIO);
    from += done;
    size -= static_cast<size_t>(done);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (fsync(fd_) != 0) return Error(errno);
  if (close(std::exchange(fd_, -1)) != 0) return Error(errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Error(errno);
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace llm
