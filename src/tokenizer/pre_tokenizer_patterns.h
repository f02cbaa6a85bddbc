// The splitting rules of byte-level BPE models by the name that GGUF files give them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llm {

struct PreTokenizerRule {
  // Applied one after the other: each match of a stage becomes a piece, and so does what lies
  // between matches.
  std::vector<absl::string_view> stages;
  bool normalize_to_nfc = false;
  // A piece that is a token is taken whole, even where merging would end elsewhere.
  bool prefer_whole_pieces = false;
};

// False when the name is unknown.
bool FindPreTokenizerRule(absl::string_view name, PreTokenizerRule* rule);

// PCRE2's \s differs from Unicode's White_Space (it lacks most of it, or with UCP has U+180E too),
// so the set is spelled out.
std::string ExpandWhitespaceClasses(absl::string_view pattern);

// The rule that byte-level pre-tokenizers have of their own.
absl::string_view ByteLevelPattern();

// A pattern of tokenizer.json (Oniguruma's syntax) as PCRE2 reads it. UNIMPLEMENTED, naming the
// construct, for one that the two may read differently.
absl::StatusOr<std::string> PortPattern(absl::string_view pattern);
// Matches this text.
std::string QuotePattern(absl::string_view text);

}  // namespace llm
