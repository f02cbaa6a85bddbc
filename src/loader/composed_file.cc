// A read walks the parts that it touches.
#include "src/loader/composed_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {

ComposedFile::ComposedFile(std::string name, std::vector<FilePart> parts,
                           std::vector<std::unique_ptr<ModelFile>> files)
    : name_(std::move(name)),
      parts_(std::move(parts)),
      files_(std::move(files)),
      size_(parts_.empty() ? 0 : parts_.back().begin + parts_.back().size_bytes) {}

absl::Status ComposedFile::Read(uint64_t offset, uint64_t size, void* dst) const {
  if (offset > size_ || size > size_ - offset) {
    return absl::DataLossError(
        absl::StrCat(name_, ": cannot read ", size, " bytes at offset ", offset, " of ", size_));
  }
  const uint64_t end = offset + size;
  char* out = static_cast<char*>(dst);
  auto part = std::partition_point(parts_.begin(), parts_.end(), [&](const FilePart& p) {
    return p.begin + p.size_bytes <= offset;
  });
  while (offset < end) {
    if (part == parts_.end() || part->begin > offset) {  // between parts
      const uint64_t gap_end = part == parts_.end() ? end : std::min(end, part->begin);
      std::memset(out, 0, static_cast<size_t>(gap_end - offset));
      out += gap_end - offset;
      offset = gap_end;
      continue;
    }
    const uint64_t inside = offset - part->begin;
    const uint64_t count = std::min(end - offset, part->size_bytes - inside);
    LLM_RETURN_IF_ERROR(part->derived != nullptr
                            ? part->derived->Read(inside, count, out)
                            : part->file->Read(part->offset + inside, count, out));
    out += count;
    offset += count;
    ++part;
  }
  return absl::OkStatus();
}

std::unique_ptr<ModelFile> BorrowedFile(const ModelFile& file) {
  std::vector<FilePart> whole = {{.begin = 0, .size_bytes = file.size(), .file = &file}};
  return std::make_unique<ComposedFile>(file.name(), std::move(whole),
                                        std::vector<std::unique_ptr<ModelFile>>());
}

absl::Status HeldBytes::Read(uint64_t offset, uint64_t size, void* dst) const {
  std::memcpy(dst, bytes_.data() + offset, static_cast<size_t>(size));
  return absl::OkStatus();
}

}  // namespace llm
