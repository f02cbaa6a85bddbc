// The rules of tokenizer.json: how a text is normalized and cut before merging, what frames it, and
// how tokens become text again.
#pragma once

#include "absl/status/status.h"
#include "src/loader/json_document.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

// Sets split_rule, space_prefix, and model: kBpe where bytes are the symbols, else kCharBpe. Errors
// as TokenizerSpecFromHub's, from "normalizer: " and its like on.
absl::Status ReadHubTextRules(JsonValue tokenizer, TokenizerSpec* spec);

// Sets add_bos, add_eos and their ids from post_processor.
absl::Status ReadHubFrame(JsonValue tokenizer, TokenizerSpec* spec);

}  // namespace llm
