// Random-access bytes of a model file. Read by pread: a mapped file that someone truncates would
// kill the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/loader/file_mapping.h"

namespace llm {

class ModelFile {
 public:
  virtual ~ModelFile() = default;
  virtual uint64_t size() const = 0;
  // Reads exactly `size` bytes at `offset`; DATA_LOSS naming file, offset and size when they are
  // not there. Thread-safe.
  virtual absl::Status Read(uint64_t offset, uint64_t size, void* dst) const = 0;
  virtual const std::string& name() const = 0;  // for messages
  // The same bytes without reading them. FAILED_PRECONDITION: no file on disk;
  // INVALID_ARGUMENT: not aligned to 64 bytes there.
  virtual absl::StatusOr<FileMapping> Map(uint64_t offset, uint64_t size) const;
};

// NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (a directory), naming the path.
absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelFile(const std::string& path);
// The bytes stay the caller's and outlive the file.
std::unique_ptr<ModelFile> MemoryModelFile(const void* data, uint64_t size, std::string name);

// Bytes [offset, offset + size) of a file that the caller has open and keeps open (size 0: up to
// its end). INVALID_ARGUMENT: no regular file, or one that ends before.
absl::StatusOr<std::unique_ptr<ModelFile>> DescriptorModelFile(int fd, uint64_t offset,
                                                               uint64_t size);

// As llm_read_callback.
using ReadCallback = int64_t (*)(void* user_data, uint64_t offset, void* buffer, uint64_t size);
std::unique_ptr<ModelFile> CallbackModelFile(ReadCallback read, void* user_data, uint64_t size);

}  // namespace llm
