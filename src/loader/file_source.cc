// Reads go through the tensor's own bounds: the file's are not enough.
#include "src/loader/file_source.h"

#include "absl/strings/str_cat.h"
#include "src/loader/gguf_types.h"

namespace llm {

absl::Status FileSource::BuildIndex() {
  for (const TensorInfo& tensor : tensors_) {
    if (!index_.emplace(tensor.name, &tensor).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", Printable(tensor.name), ": there twice"));
    }
  }
  return absl::OkStatus();
}

const TensorInfo* FileSource::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : found->second;
}

GgufHeaderBytes FileSource::header() const {
  if (packed_) return {};
  const HeaderBytes& bytes = metadata_->bytes();
  return {bytes.View({0, bytes.size()}), file_->size()};
}

absl::Status FileSource::Read(const TensorInfo& tensor, uint64_t offset, uint64_t size,
                              void* dst) const {
  if (offset > tensor.size_bytes || size > tensor.size_bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat(where_, ": tensor ", Printable(tensor.name),
                                                   ": cannot read ", size, " bytes at offset ",
                                                   offset, " of ", tensor.size_bytes));
  }
  return file_->Read(tensor.file_offset + offset, size, dst);
}

}  // namespace llm
