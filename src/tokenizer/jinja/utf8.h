// Code points of UTF-8 text as Python's str sees them. Every function but IsValidUtf8 requires
// valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace llm::jinja {

bool IsValidUtf8(absl::string_view text);

// Code points in `text`.
size_t CodePointCount(absl::string_view text);

// The code point that begins at `text[*position]`; moves `position` behind it. REQUIRES: *position
// < text.size().
uint32_t NextCodePoint(absl::string_view text, size_t* position);

// Bytes of the code point that begins with `lead`.
size_t CodePointBytes(char lead);

// The byte at which code point `index` begins, or text.size() when there are fewer.
size_t ByteOffset(absl::string_view text, size_t index);

void AppendCodePoint(uint32_t code_point, std::string* out);

bool IsSpace(uint32_t code_point);
// Letters of the Latin, Greek and Cyrillic blocks; others are returned unchanged.
uint32_t ToUpper(uint32_t code_point);
uint32_t ToLower(uint32_t code_point);

std::string Upper(absl::string_view text);
std::string Lower(absl::string_view text);

enum class StripSide { kLeft, kRight, kBoth };

// Without white space at the ends, or without any of the code points in `*chars`.
absl::string_view Strip(absl::string_view text, StripSide side,
                        const absl::string_view* chars = nullptr);

}  // namespace llm::jinja
