// What opening and planning a model both refuse before any weight is read.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

// INVALID_ARGUMENT when the model can draw ids that are no tokens. `where` names the file.
inline absl::Status CheckVocabulary(absl::string_view where, const Tokenizer& tokenizer,
                                    int32_t embedding_rows) {
  if (tokenizer.vocab_size() >= embedding_rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(where, ": the tokenizer has ",
                                                 tokenizer.vocab_size(), " tokens, the embedding ",
                                                 embedding_rows));
}

}  // namespace llm
