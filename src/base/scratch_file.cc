// Created without a name where the file system can, else unlinked at once.
#include "src/base/scratch_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/output_file.h"

namespace llm {
namespace {

int CreateNameless(const std::string& folder) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string name = absl::StrCat(folder, "/inlay-XXXXXX");
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

ScratchFile::ScratchFile(std::string folder, int fd) : folder_(std::move(folder)), fd_(fd) {}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : folder_(std::move(other.folder_)), fd_(std::exchange(other.fd_, -1)) {}

ScratchFile::~ScratchFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<ScratchFile> ScratchFile::Create(std::string folder) {
  const int fd = CreateNameless(folder);
  const int error = errno;
  ScratchFile file(std::move(folder), fd);
  if (fd < 0) return file.Error("create a file", error);
  return file;
}

absl::Status ScratchFile::Error(const char* what, int error) const {
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " in ", folder_));
  if (error != EFBIG && error != EDQUOT) return status;
  return absl::ResourceExhaustedError(status.message());
}

absl::Status ScratchFile::Write(uint64_t offset, const void* data, size_t size) {
  const ScopedQuietWrites quiet;
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = pwrite(fd_, from, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Error("write", done < 0 ? errno : EIO);
    from += done;
    offset += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
  return absl::OkStatus();
}

absl::Status ScratchFile::Read(uint64_t offset, void* data, size_t size) const {
  char* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t done = pread(fd_, to, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return Error("read", errno);
    if (done == 0) return absl::DataLossError(absl::StrCat("the file in ", folder_, " is cut"));
    to += done;
    offset += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
  return absl::OkStatus();
}

}  // namespace llm
