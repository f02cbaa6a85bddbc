// What both kinds of BPE share: user-defined tokens are found first, the text between them is
// normalised and cut into pieces, and a piece's symbols are joined by merges.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/added_token_matcher.h"
#include "src/tokenizer/bpe_merges.h"
#include "src/tokenizer/bpe_symbols.h"
#include "src/tokenizer/pre_tokenizer.h"
#include "src/tokenizer/text_encoder.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

class MergeEncoder : public TextEncoder {
 public:
  absl::Status Encode(absl::string_view text, bool at_start, std::vector<int32_t>* ids) const final;
  size_t size_bytes() const final { return merges_.size_bytes(); }

 protected:
  // `vocabulary` and `user_defined` outlive the encoder.
  MergeEncoder(const Vocabulary* vocabulary, const AddedTokenMatcher* user_defined,
               BpeMerges merges, std::unique_ptr<PreTokenizer> pre_tokenizer);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  // `text` in NFC, where the pre-tokenizer asks for it: itself, or what *storage then is.
  absl::string_view InNfc(absl::string_view text, std::string* storage) const;

 private:
  struct Scratch {
    PreTokenizer::Scratch split;
    std::vector<absl::string_view> pieces;
    BpeSymbols symbols;
    std::string normalized;
  };

  // Of a text that is not empty, which begins the whole one or not; as InNfc.
  virtual absl::string_view Normalize(absl::string_view text, bool at_start,
                                      std::string* storage) const = 0;
  // What a piece is before merges. `symbols` are empty.
  virtual void FillSymbols(absl::string_view piece, BpeSymbols* symbols) const = 0;

  absl::Status EncodePlain(absl::string_view text, bool at_start, Scratch* scratch,
                           std::vector<int32_t>* ids) const;
  void EncodePiece(absl::string_view piece, Scratch* scratch, std::vector<int32_t>* ids) const;

  const Vocabulary* const vocabulary_;
  const AddedTokenMatcher* const user_defined_;
  const BpeMerges merges_;
  const std::unique_ptr<PreTokenizer> pre_tokenizer_;
};

}  // namespace llm
