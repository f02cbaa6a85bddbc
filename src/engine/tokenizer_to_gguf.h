// Writes a tokenizer spec as GGUF metadata, for TokenizerSpecFromGguf to read: the standard keys,
// and keys of this library's own for what GGUF cannot say.
#pragma once

#include "absl/status/status.h"
#include "src/loader/gguf_writer.h"
#include "src/loader/weight_source.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

inline constexpr absl::string_view kCharBpeModel = "char-bpe";              // tokenizer.ggml.model
inline constexpr absl::string_view kEndIdsKey = "tokenizer.end_token_ids";  // beside eos_token_id
inline constexpr absl::string_view kSplitPatternsKey = "tokenizer.split_patterns";

// `spec` is no kSpm.
void WriteTokenizer(const TokenizerSpec& spec, GgufWriter* writer);

// Reads this library's own keys; a file without them leaves `spec` as it is.
absl::Status ReadOwnTokenizerKeys(const Metadata& metadata, TokenizerSpec* spec);

}  // namespace llm
