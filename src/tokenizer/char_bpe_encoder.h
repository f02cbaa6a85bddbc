// BPE over characters, as tokenizer.json has SentencePiece's models: by merges, with bytes for
// characters that are no tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/added_token_matcher.h"
#include "src/tokenizer/bpe_merges.h"
#include "src/tokenizer/bpe_symbols.h"
#include "src/tokenizer/pre_tokenizer.h"
#include "src/tokenizer/text_encoder.h"
#include "src/tokenizer/tokenizer_spec.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

class CharBpeEncoder final : public TextEncoder {
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

  CharBpeEncoder(const TokenizerSpec& spec, const Vocabulary* vocabulary,
                 const AddedTokenMatcher* user_defined, BpeMerges merges,
                 std::unique_ptr<PreTokenizer> pre_tokenizer);

  absl::Status EncodePlain(absl::string_view text, bool at_start, Scratch* scratch,
                           std::vector<int32_t>* ids) const;
  std::string Normalize(absl::string_view text, bool at_start) const;
  void EncodePiece(absl::string_view piece, Scratch* scratch, std::vector<int32_t>* ids) const;
  void FillSymbols(absl::string_view piece, BpeSymbols* symbols) const;

  const Vocabulary* vocabulary_;
  const AddedTokenMatcher* user_defined_;
  const BpeMerges merges_;
  const std::unique_ptr<PreTokenizer> pre_tokenizer_;
  const SpacePrefix space_prefix_;
  const int32_t unknown_id_;  // -1: unknown characters are left out
  const bool fuse_unknown_;
};

}  // namespace llm
