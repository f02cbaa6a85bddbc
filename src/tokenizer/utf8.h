// Walks bytes that should be UTF-8 but may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace llm {

enum class Utf8Kind : uint8_t {
  kValid,       // one whole character
  kInvalid,     // a maximal part that no continuation can make valid (Unicode, table 3-7)
  kIncomplete,  // the text ends inside what may still become a character
};

struct Utf8Part {
  Utf8Kind kind;
  uint8_t length;       // bytes; 0 only for an empty text
  char32_t code_point;  // of a valid character, else U+FFFD
};

inline constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// The part that `text` begins with.
Utf8Part NextUtf8Part(absl::string_view text);
// How many bytes from the start are whole, valid characters.
size_t ValidUtf8Prefix(absl::string_view text);
// `text` with each invalid or incomplete part replaced by U+FFFD, as Python's errors="replace"
// does.
std::string ReplaceInvalidUtf8(absl::string_view text);
// Bytes of the white space (Unicode's White_Space) that valid text begins or ends with.
size_t WhiteSpacePrefix(absl::string_view text);
size_t WhiteSpaceSuffix(absl::string_view text);
// REQUIRES: a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string* text);

}  // namespace llm
