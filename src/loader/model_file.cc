// A file on disk is opened without blocking, so that a FIFO given as a model is refused instead of
// waited for.
#include "src/loader/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
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

// A file that has become shorter than it was when it was opened.
absl::Status TooShort(const ModelFile& file, uint64_t offset, uint64_t size) {
  return absl::DataLossError(absl::StrCat(file.name(), ": reading ", size, " bytes at offset ",
                                          offset, ": the file has become shorter"));
}

absl::Status ReadError(const ModelFile& file, int error, uint64_t offset, uint64_t size) {
  return absl::ErrnoToStatus(
      error, absl::StrCat(file.name(), ": reading ", size, " bytes at offset ", offset));
}

// A part of an open file.
struct Section {
  int fd = -1;
  bool owned = false;   // closed in the end
  uint64_t offset = 0;  // of byte 0; offset + size fits off_t
  uint64_t size = 0;    // when it was opened
};

class DiskFile final : public ModelFile {
 public:
  DiskFile(const Section& section, std::string name) : section_(section), name_(std::move(name)) {}
  ~DiskFile() override {
    if (section_.owned) close(section_.fd);
  }

  uint64_t size() const override { return section_.size; }
  const std::string& name() const override { return name_; }

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    if (absl::Status in_file = CheckRange(*this, offset, size); !in_file.ok()) return in_file;
    uint64_t done = 0;
    while (done < size) {
      const size_t part = static_cast<size_t>(std::min(size - done, kMaxReadBytes));
      const ssize_t got = pread(section_.fd, static_cast<char*>(dst) + done, part,
                                static_cast<off_t>(section_.offset + offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ReadError(*this, errno, offset, size);
      if (got == 0) return TooShort(*this, offset, size);
      done += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FileMapping> Map(uint64_t offset, uint64_t size) const override {
    if (absl::Status in_file = CheckRange(*this, offset, size); !in_file.ok()) return in_file;
    const uint64_t position = section_.offset + offset;
    if (position % kMapAlignment != 0) {
      return absl::InvalidArgumentError(absl::StrCat(name_, ": cannot map offset ", position,
                                                     ": no multiple of ", kMapAlignment));
    }
    const uint64_t skipped = position % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const size_t mapped = static_cast<size_t>(skipped + size);
    void* base = mmap(nullptr, mapped, PROT_READ, MAP_SHARED, section_.fd,
                      static_cast<off_t>(position - skipped));
    if (base == MAP_FAILED) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat(name_, ": mapping ", size, " bytes at offset ", position));
    }
    madvise(base, mapped, MADV_WILLNEED);  // reading ahead is all that a failure costs
    return FileMapping(base, mapped, static_cast<const std::byte*>(base) + skipped);
  }

 private:
  static constexpr uint64_t kMapAlignment = 64;  // what kernels need of weights

  const Section section_;
  const std::string name_;
};

// Reads happen on worker threads, where nothing would catch what the host throws.
class CallbackFile final : public ModelFile {
 public:
  CallbackFile(ReadCallback read, void* user_data, uint64_t size)
      : read_(read), user_data_(user_data), size_(size) {}

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    if (absl::Status in_file = CheckRange(*this, offset, size); !in_file.ok()) return in_file;
    try {
      return ReadAll(offset, size, static_cast<char*>(dst));
    } catch (...) {
      return absl::InternalError(absl::StrCat(name_, ": the callback threw an exception reading ",
                                              size, " bytes at offset ", offset));
    }
  }

 private:
  absl::Status ReadAll(uint64_t offset, uint64_t size, char* dst) const {
    uint64_t done = 0;
    while (done < size) {
      const uint64_t part = std::min(size - done, kMaxReadBytes);
      const int64_t got = read_(user_data_, offset + done, dst + done, part);
      if (got == -EINTR) continue;
      if (got < 0) {
        return ReadError(*this, got >= -4095 ? static_cast<int>(-got) : EIO, offset, size);
      }
      if (got == 0) return TooShort(*this, offset, size);
      if (static_cast<uint64_t>(got) > part) {
        return absl::InternalError(
            absl::StrCat(name_, ": the callback returned ", got, " bytes, asked for ", part));
      }
      done += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }

  const ReadCallback read_;
  void* const user_data_;
  const uint64_t size_;
  const std::string name_ = "model read by callback";
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

absl::StatusOr<FileMapping> ModelFile::Map(uint64_t /*offset*/, uint64_t /*size*/) const {
  return absl::FailedPreconditionError(
      absl::StrCat("map_pack: ", name(), " is no file on disk that can be mapped"));
}

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
  const Section whole = {.fd = fd, .owned = true, .size = static_cast<uint64_t>(info.st_size)};
  return std::make_unique<DiskFile>(whole, path);
}

std::unique_ptr<ModelFile> MemoryModelFile(const void* data, uint64_t size, std::string name) {
  return std::make_unique<MemoryFile>(data, size, std::move(name));
}

absl::StatusOr<std::unique_ptr<ModelFile>> DescriptorModelFile(int fd, uint64_t offset,
                                                               uint64_t size) {
  std::string name = absl::StrCat("file descriptor ", fd);
  struct stat info;
  if (fstat(fd, &info) != 0) return absl::InvalidArgumentError(absl::StrCat(name, ": not open"));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": not a regular file"));
  }
  const uint64_t end = static_cast<uint64_t>(info.st_size);
  if (offset > end || size > end - offset) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", size, " bytes at offset ", offset,
                                                   " lie outside its ", end, " bytes"));
  }
  const Section part = {
      .fd = fd, .owned = false, .offset = offset, .size = size != 0 ? size : end - offset};
  return std::make_unique<DiskFile>(part, std::move(name));
}

std::unique_ptr<ModelFile> CallbackModelFile(ReadCallback read, void* user_data, uint64_t size) {
  return std::make_unique<CallbackFile>(read, user_data, size);
}

}  // namespace llm
