// Text to numbers, by Python's int() and float().
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace llm::jinja {

// White space around and single underscores between digits are fine. False when malformed or beyond
// 64 bits.
bool ParseInt(absl::string_view text, int base, int64_t* value);
bool ParseFloat(absl::string_view text, double* value);

}  // namespace llm::jinja
