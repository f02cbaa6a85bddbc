// Byte-level BPE: pieces of text, as bytes, joined by the merge of lowest rank until none applies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/base/text_list.h"
#include "src/tokenizer/added_token_matcher.h"
#include "src/tokenizer/bpe_merges.h"
#include "src/tokenizer/bpe_symbols.h"
#include "src/tokenizer/pre_tokenizer.h"
#include "src/tokenizer/text_encoder.h"
#include "src/tokenizer/tokenizer_spec.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

class BpeEncoder final : public TextEncoder {
 public:
  // `merges` are needed during the call alone; `vocabulary` and `user_defined` outlive the encoder.
  static absl::StatusOr<std::unique_ptr<TextEncoder>> Create(const TokenizerSpec& spec,
                                                             const TextList& merges,
                                                             const Vocabulary* vocabulary,
                                                             const AddedTokenMatcher* user_defined);

  absl::Status Encode(absl::string_view text, bool at_start,
                      std::vector<int32_t>* ids) const override;
  size_t size_bytes() const override { return merges_.size_bytes(); }

 private:
  struct Scratch {
    PreTokenizer::Scratch split;
    std::vector<absl::string_view> pieces;
    BpeSymbols symbols;
    std::string normalized;
  };

  BpeEncoder(const Vocabulary* vocabulary, const AddedTokenMatcher* user_defined, BpeMerges merges,
             std::unique_ptr<PreTokenizer> pre_tokenizer, int32_t unknown_id);

  absl::Status EncodePlain(absl::string_view text, Scratch* scratch,
                           std::vector<int32_t>* ids) const;
  void EncodePiece(absl::string_view piece, Scratch* scratch, std::vector<int32_t>* ids) const;
  void FillSymbols(absl::string_view piece, BpeSymbols* symbols) const;

  const Vocabulary* vocabulary_;
  const AddedTokenMatcher* user_defined_;
  BpeMerges merges_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  // What stands for a character whose bytes have no tokens: those of U+FFFD, else the unknown
  // token, else nothing.
  std::vector<int32_t> replacement_;
};

}  // namespace llm
