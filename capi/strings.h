// Strings across the boundary.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "inlay/llm.h"

namespace llm {

inline llm_string ToC(absl::string_view text) { return {text.data(), text.size()}; }
inline absl::string_view FromC(llm_string text) {
  return text.size == 0 ? absl::string_view() : absl::string_view(text.data, text.size);
}

// INVALID_ARGUMENT for a size without data, or one that no memory can hold.
inline absl::Status CheckArray(absl::string_view name, const void* data, size_t size) {
  if (size > 0 && data == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": NULL with size ", size));
  }
  if (size > (size_t{1} << 40)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": impossible size ", size));
  }
  return absl::OkStatus();
}

// REQUIRES: path is not NULL.
inline absl::StatusOr<std::string> PathFromC(const char* path, size_t path_size) {
  if (path_size == 0 || path_size > 4096) {
    return absl::InvalidArgumentError("path_size: not in [1, 4096]");
  }
  std::string result(path, path_size);
  if (result.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("path: contains a zero byte");
  }
  return result;
}

// Writes what fits, and always the whole size.
template <typename T>
void CopyOut(const T* from, size_t count, T* to, size_t capacity, size_t* whole) {
  const size_t written = std::min(count, capacity);
  if (written > 0) std::memcpy(to, from, written * sizeof(T));
  *whole = count;
}

}  // namespace llm
