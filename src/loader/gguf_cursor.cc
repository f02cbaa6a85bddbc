// Memory grows with the bytes that the file really has, never with a number that it claims.
#include "src/loader/gguf_cursor.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"

namespace llm {
namespace {

// One read covers the header of a model with a small vocabulary; a large one costs a few more, each
// half as much again.
constexpr uint64_t kMinChunkBytes = 1u << 18;

constexpr size_t kHugePageBytes = size_t{2} << 20;

// As realloc. A header lives as long as the open: what rounding up costs is soon given back.
char* Reallocate(char* old, size_t size) {
  if (old != nullptr || size < kHugePageBytes / 2) {
    return static_cast<char*>(std::realloc(old, std::max<size_t>(size, 1)));
  }
  void* data = std::aligned_alloc(kHugePageBytes, RoundUp(size, kHugePageBytes));
  if (data != nullptr) madvise(data, RoundUp(size, kHugePageBytes), MADV_HUGEPAGE);
  return static_cast<char*>(data);
}

}  // namespace

absl::Status HeaderBytes::Resize(uint64_t size) {
  if (data_ != nullptr && size == size_) return absl::OkStatus();
  char* old = data_.release();
  char* resized = Reallocate(old, static_cast<size_t>(size));
  data_.reset(resized != nullptr ? resized : old);
  if (resized == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", size, " bytes for the header"));
  }
  size_ = size;
  return absl::OkStatus();
}

GgufCursor::GgufCursor(const ModelFile& file, uint64_t max_header_bytes, uint64_t first_bytes)
    : file_(file), end_(std::min(file.size(), max_header_bytes)), first_bytes_(first_bytes) {}

std::string GgufCursor::DescribeRemaining() const {
  return absl::StrCat("the ", remaining(), " bytes that are left of the ",
                      end_ < file_.size() ? "limit for headers" : "file");
}

absl::StatusOr<ByteRange> GgufCursor::Skip(uint64_t size, absl::string_view what) {
  if (size > remaining()) {
    return absl::InvalidArgumentError(absl::StrCat(what, " at offset ", position_, " takes ", size,
                                                   " bytes, more than ", DescribeRemaining()));
  }
  if (position_ + size > bytes_.size()) LLM_RETURN_IF_ERROR(Fetch(position_ + size));
  const ByteRange range = {position_, size};
  position_ += size;
  return range;
}

absl::StatusOr<ByteRange> GgufCursor::String(absl::string_view what, uint64_t max_bytes) {
  LLM_ASSIGN_OR_RETURN(const uint64_t size, Number<uint64_t>(what));
  if (size > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(what, " at offset ", position_, " has ", size,
                                                   " bytes, more than the limit of ", max_bytes));
  }
  return Skip(size, what);
}

absl::Status GgufCursor::SkipStrings(uint64_t count, uint64_t max_bytes) {
  for (uint64_t i = 0; i < count; ++i) {
    // A vocabulary has hundreds of thousands of them, nearly all fetched already.
    if (const uint64_t fetched = bytes_.size() - position_; fetched >= sizeof(uint64_t)) {
      const uint64_t size = bytes_.Load<uint64_t>(position_);
      if (size <= max_bytes && size <= fetched - sizeof(uint64_t)) {
        position_ += sizeof(uint64_t) + size;
        continue;
      }
    }
    if (absl::Status string = String("string", max_bytes).status(); !string.ok()) {
      return absl::Status(string.code(), absl::StrCat("element ", i, ": ", string.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HeaderBytes> GgufCursor::Take() {
  LLM_RETURN_IF_ERROR(bytes_.Resize(position_));
  return std::move(bytes_);
}

absl::Status GgufCursor::Fetch(uint64_t end) {
  const uint64_t begin = bytes_.size();
  const uint64_t chunk = std::max({kMinChunkBytes, begin / 2, begin == 0 ? first_bytes_ : 0});
  const uint64_t new_size = std::min(end_, std::max(end, begin + chunk));
  LLM_RETURN_IF_ERROR(bytes_.Resize(new_size));
  return file_.Read(begin, new_size - begin, bytes_.data() + begin);
}

}  // namespace llm
