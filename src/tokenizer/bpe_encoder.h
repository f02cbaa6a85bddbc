// Byte-level BPE: pieces of text, as bytes, joined by the merge of lowest rank until none applies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/base/text_list.h"
#include "src/tokenizer/merge_encoder.h"
#include "src/tokenizer/tokenizer_spec.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

class BpeEncoder final : public MergeEncoder {
 public:
  // `merges` are needed during the call alone; `vocabulary` and `user_defined` outlive the encoder.
  static absl::StatusOr<std::unique_ptr<TextEncoder>> Create(const TokenizerSpec& spec,
                                                             const TextList& merges,
                                                             const Vocabulary* vocabulary,
                                                             const AddedTokenMatcher* user_defined);

 private:
  BpeEncoder(const Vocabulary* vocabulary, const AddedTokenMatcher* user_defined, BpeMerges merges,
             std::unique_ptr<PreTokenizer> pre_tokenizer, int32_t unknown_id);

  absl::string_view Normalize(absl::string_view text, bool /*at_start*/,
                              std::string* storage) const override {
    return InNfc(text, storage);
  }
  void FillSymbols(absl::string_view piece, BpeSymbols* symbols) const override;

  // What stands for a character whose bytes have no tokens: those of U+FFFD, else the unknown
  // token, else nothing.
  std::vector<int32_t> replacement_;
};

}  // namespace llm
