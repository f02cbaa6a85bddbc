// Unicode Normalization Form C, which some models' vocabularies presume.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace llm {

// False when the text surely is in NFC: every character below U+0300 is, and stays so beside any
// other such.
bool MayNeedNfc(absl::string_view text);

// UAX #15 with the tables of Unicode 14. REQUIRES: valid UTF-8.
std::string NormalizeToNfc(absl::string_view text);

}  // namespace llm
