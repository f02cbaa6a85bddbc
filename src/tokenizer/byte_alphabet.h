// The byte-level alphabet of GPT-2: every byte written as one printable character.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace llm {

// Appends the bytes that `text` stands for; false (and nothing appended) when a character is not of
// the alphabet.
bool DecodeByteAlphabet(absl::string_view text, std::string* bytes);

}  // namespace llm
