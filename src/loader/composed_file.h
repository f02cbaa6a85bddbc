// A file that exists nowhere in one piece: its bytes are taken from other files, or made from them,
// when they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/loader/model_file.h"

namespace llm {

// Bytes that are computed. Thread-safe.
class DerivedBytes {
 public:
  virtual ~DerivedBytes() = default;
  // Writes bytes [offset, offset + size), which lie inside.
  virtual absl::Status Read(uint64_t offset, uint64_t size, void* dst) const = 0;
};

// Bytes [begin, begin + size_bytes) of a composed file: those of `derived`, else of `file` from
// `offset` on.
struct FilePart {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;
  const ModelFile* file = nullptr;
  uint64_t offset = 0;
  std::shared_ptr<const DerivedBytes> derived = nullptr;
};

class ComposedFile final : public ModelFile {
 public:
  // What lies in no part reads as zero; the file ends with the last one. REQUIRES: parts are sorted
  // and do not overlap; `files` are what they refer to.
  ComposedFile(std::string name, std::vector<FilePart> parts,
               std::vector<std::unique_ptr<ModelFile>> files);

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override;

 private:
  const std::string name_;
  const std::vector<FilePart> parts_;
  const std::vector<std::unique_ptr<ModelFile>> files_;
  const uint64_t size_;
};

// The same bytes, for what wants a file of its own. `file` outlives it.
std::unique_ptr<ModelFile> BorrowedFile(const ModelFile& file);

// Bytes that are held.
class HeldBytes final : public DerivedBytes {
 public:
  explicit HeldBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override;

 private:
  const std::string bytes_;
};

}  // namespace llm
