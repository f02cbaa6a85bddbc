// Reads a tokenizer spec out of GGUF metadata (the keys tokenizer.ggml.*).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "src/loader/weight_source.h"
#include "src/tokenizer/tokenizer.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

// UNIMPLEMENTED for a tokenizer model other than "gpt2" and "llama"; NOT_FOUND or INVALID_ARGUMENT
// naming the key when a needed one is missing or of another type. Whether the parts fit each other
// is for Tokenizer::Create to say. `texts` stay the metadata's.
absl::StatusOr<TokenizerSpec> TokenizerSpecFromGguf(const Metadata& metadata,
                                                    TokenizerTexts* texts);

// Errors of both.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerFromGguf(const Metadata& metadata);

}  // namespace llm
