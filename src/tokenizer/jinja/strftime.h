// Dates as strftime_now prints them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace llm::jinja {

// `time_s` (seconds since 1970) in UTC with English names, whatever the host's locale. Unknown
// directives stay as they are.
std::string FormatTime(absl::string_view format, int64_t time_s);

}  // namespace llm::jinja
