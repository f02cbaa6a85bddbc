// Refuses a tokenizer spec whose parts do not fit each other, before anything is built from it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

// A token is matched anew at every position of a text, so its length bounds the work of one byte.
// Real ones stay under 600.
inline constexpr size_t kMaxTokenBytes = 4096;
inline constexpr size_t kMaxTokens = size_t{1} << 22;  // real vocabularies: up to 262,144
inline constexpr size_t kMaxMerges = (size_t{1} << 23) - 1;
inline constexpr size_t kMaxTextBytes = size_t{1}
                                        << 28;  // of one Encode: symbols are counted in 32 bits

// `texts` stand in place of the spec's own. INVALID_ARGUMENT naming the field and the token.
absl::Status CheckTokenizerSpec(const TokenizerSpec& spec, const TokenizerTexts& texts);

// "token 17 ("abc")", escaped and cut short: for messages.
std::string DescribeToken(size_t id, absl::string_view text);

}  // namespace llm
