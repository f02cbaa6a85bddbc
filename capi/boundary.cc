// The last error is a plain array, so that threads start and end without running code of ours.
#include "capi/boundary.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

constexpr size_t kLastErrorBytes = 1024;
thread_local char last_error[kLastErrorBytes];

}  // namespace

llm_status RecordError(absl::StatusCode code, absl::string_view message) noexcept {
  const size_t size = std::min(message.size(), kLastErrorBytes - 1);
  std::memmove(last_error, message.data(), size);
  last_error[size] = '\0';
  return static_cast<llm_status>(code);
}

absl::Status NullArgument(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": NULL"));
}

}  // namespace llm

extern "C" const char* llm_last_error(void) { return llm::last_error; }
