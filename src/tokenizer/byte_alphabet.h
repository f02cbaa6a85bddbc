// The byte-level alphabet of GPT-2: every byte written as one printable character.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace llm {

// Writes the bytes that `text` stands for, at most text.size() of them, and returns how many;
// nullopt, with anything written, when a character is not of the alphabet.
std::optional<size_t> DecodeByteAlphabet(absl::string_view text, char* bytes);

}  // namespace llm
