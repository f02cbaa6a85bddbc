// BPE over characters, as tokenizer.json has SentencePiece's models: by merges, with bytes for
// characters that are no tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/merge_encoder.h"
#include "src/tokenizer/tokenizer_spec.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

class CharBpeEncoder final : public MergeEncoder {
 public:
  // `merges` are needed during the call alone; `vocabulary` and `user_defined` outlive the encoder.
  static absl::StatusOr<std::unique_ptr<TextEncoder>> Create(const TokenizerSpec& spec,
                                                             const TextList& merges,
                                                             const Vocabulary* vocabulary,
                                                             const AddedTokenMatcher* user_defined);

 private:
  CharBpeEncoder(const TokenizerSpec& spec, const Vocabulary* vocabulary,
                 const AddedTokenMatcher* user_defined, BpeMerges merges,
                 std::unique_ptr<PreTokenizer> pre_tokenizer);

  absl::string_view Normalize(absl::string_view text, bool at_start,
                              std::string* storage) const override;
  void FillSymbols(absl::string_view piece, BpeSymbols* symbols) const override;

  const SpacePrefix space_prefix_;
  const int32_t unknown_id_;  // -1: unknown characters are left out
  const bool fuse_unknown_;
};

}  // namespace llm
