// Structs that carry their size: an older caller's is completed with defaults, a newer caller's
// accepted when it asks for nothing new.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/base/status_macros.h"

namespace llm {

// The size that the caller gave; INVALID_ARGUMENT when it cannot be one.
absl::Status CheckStructSize(absl::string_view name, uint32_t struct_size);
// INVALID_ARGUMENT for a size that ends before `least`, where `what`, which no caller can leave
// out, does.
absl::Status CheckLeastSize(absl::string_view name, uint32_t struct_size, size_t least,
                            absl::string_view what);
// UNIMPLEMENTED unless all bytes are zero.
absl::Status CheckUnknownBytes(absl::string_view name, const void* bytes, size_t size);

// Copies a caller's struct into ours; what the caller does not know is zero, which means the
// default.
template <typename Struct>
absl::Status ReadStruct(absl::string_view name, const Struct* theirs, Struct* ours) {
  std::memset(ours, 0, sizeof(Struct));
  const uint32_t size = theirs->struct_size;
  LLM_RETURN_IF_ERROR(CheckStructSize(name, size));
  if (size > sizeof(Struct)) {
    LLM_RETURN_IF_ERROR(CheckUnknownBytes(
        name, reinterpret_cast<const char*>(theirs) + sizeof(Struct), size - sizeof(Struct)));
  }
  std::memcpy(ours, theirs, size < sizeof(Struct) ? size : sizeof(Struct));
  return absl::OkStatus();
}

// Copies our struct into a caller's, as far as the caller knows it; its struct_size stays.
template <typename Struct>
absl::Status WriteStruct(absl::string_view name, Struct ours, Struct* theirs) {
  const uint32_t size = theirs->struct_size;
  LLM_RETURN_IF_ERROR(CheckStructSize(name, size));
  ours.struct_size = size;
  std::memcpy(theirs, &ours, size < sizeof(Struct) ? size : sizeof(Struct));
  return absl::OkStatus();
}

// A switch: 0 means `fallback`.
absl::Status ReadSwitch(absl::string_view name, uint32_t value, bool fallback, bool* on);

}  // namespace llm
