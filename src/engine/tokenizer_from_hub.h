// Reads a tokenizer spec out of a hub's tokenizer.json and tokenizer_config.json.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/loader/json_document.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

// `config` is tokenizer_config.json; an empty document where there is none. UNIMPLEMENTED for a
// model, rule or flag that this library does not follow to the letter, INVALID_ARGUMENT for a part
// that is malformed, both naming it ("tokenizer.json: pre_tokenizer: type BertPreTokenizer ...").
// Whether the parts fit each other is for Tokenizer::Create to say.
absl::StatusOr<TokenizerSpec> TokenizerSpecFromHub(const JsonDocument& tokenizer,
                                                   const JsonDocument& config);

// The text of a token that tokenizer_config.json names ("eos_token"): a string, or an object that
// has it as "content"; empty where there is none.
absl::StatusOr<std::string> HubTokenText(const JsonDocument& config, absl::string_view key);

}  // namespace llm
