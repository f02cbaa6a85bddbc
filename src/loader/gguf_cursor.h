// Reads the fields of a GGUF header one after another, fetching the file in chunks as it goes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/base/status_macros.h"
#include "src/loader/model_file.h"

namespace llm {

// A run of header bytes, by position: while the header grows, pointers into it do not last.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// The header's bytes, at their file offsets. Grown with realloc, which neither fills nor copies
// large blocks; large ones that are known at once lie in huge pages, which take a tenth of the
// time.
class HeaderBytes {
 public:
  // RESOURCE_EXHAUSTED when there is no memory; the bytes are then as before.
  absl::Status Resize(uint64_t size);
  char* data() const { return data_.get(); }
  uint64_t size() const { return size_; }
  absl::string_view View(ByteRange range) const {
    return absl::string_view(data_.get() + range.offset, static_cast<size_t>(range.size));
  }
  template <typename T>
  T Load(uint64_t offset) const {
    T value;
    std::memcpy(&value, data_.get() + offset, sizeof(T));
    return value;
  }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  uint64_t size_ = 0;
};

class GgufCursor {
 public:
  // Reads nothing beyond `max_header_bytes`, and at first `first_bytes`, where the file has as
  // many. The file outlives the cursor.
  GgufCursor(const ModelFile& file, uint64_t max_header_bytes, uint64_t first_bytes = 0);

  uint64_t position() const { return position_; }
  // Bytes that the header can still have: no count in the file may promise more.
  uint64_t remaining() const { return end_ - position_; }
  std::string DescribeRemaining() const;  // for messages
  const HeaderBytes& bytes() const { return bytes_; }

  // INVALID_ARGUMENT, naming `what` and the position, when the header ends before `size` more
  // bytes.
  absl::StatusOr<ByteRange> Skip(uint64_t size, absl::string_view what);
  template <typename T>
  absl::StatusOr<T> Number(absl::string_view what) {
    LLM_ASSIGN_OR_RETURN(const ByteRange range, Skip(sizeof(T), what));
    return bytes_.Load<T>(range.offset);
  }
  // A 64-bit length and that many bytes.
  absl::StatusOr<ByteRange> String(absl::string_view what, uint64_t max_bytes);

  // `count` of them, one after the other; the error names the element.
  absl::Status SkipStrings(uint64_t count, uint64_t max_bytes);

  // The header up to the position, for good. The cursor is not used afterwards.
  absl::StatusOr<HeaderBytes> Take();

 private:
  absl::Status Fetch(uint64_t end);

  const ModelFile& file_;
  const uint64_t end_;
  const uint64_t first_bytes_;
  uint64_t position_ = 0;
  HeaderBytes bytes_;
};

}  // namespace llm
