// The checks that every versioned struct shares.
#include "capi/versioned_struct.h"

#include <algorithm>

#include "inlay/llm.h"

namespace llm {
namespace {

// No struct of this ABI will ever be so large; a garbage size must not make us read that far.
constexpr uint32_t kMaxStructBytes = 1 << 16;

}  // namespace

absl::Status CheckStructSize(absl::string_view name, uint32_t struct_size) {
  if (struct_size >= sizeof(uint32_t) && struct_size <= kMaxStructBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ".struct_size: ", struct_size, "; was ", name, "_init called?"));
}

absl::Status CheckLeastSize(absl::string_view name, uint32_t struct_size, size_t least,
                            absl::string_view what) {
  if (struct_size >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, ".struct_size: ", struct_size, " ends before ", what, "; was ", name, "_init called?"));
}

absl::Status CheckUnknownBytes(absl::string_view name, const void* bytes, size_t size) {
  const char* begin = static_cast<const char*>(bytes);
  if (std::all_of(begin, begin + size, [](char byte) { return byte == 0; })) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat(name, ": sets a field that is newer than this library"));
}

absl::Status ReadSwitch(absl::string_view name, uint32_t value, bool fallback, bool* on) {
  if (value > LLM_OFF) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", value, " is not a switch"));
  }
  *on = value == 0 ? fallback : value == LLM_ON;
  return absl::OkStatus();
}

}  // namespace llm
