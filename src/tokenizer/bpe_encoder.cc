// A piece is its bytes.
#include "src/tokenizer/bpe_encoder.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/tokenizer/utf8.h"

namespace llm {

absl::StatusOr<std::unique_ptr<TextEncoder>> BpeEncoder::Create(
    const TokenizerSpec& spec, const TextList& merges, const Vocabulary* vocabulary,
    const AddedTokenMatcher* user_defined) {
  LLM_ASSIGN_OR_RETURN(auto pre_tokenizer, PreTokenizer::Create(spec));
  LLM_ASSIGN_OR_RETURN(BpeMerges table, BpeMerges::Create(*vocabulary, merges));
  return std::unique_ptr<TextEncoder>(new BpeEncoder(vocabulary, user_defined, std::move(table),
                                                     std::move(pre_tokenizer), spec.unknown_id));
}

BpeEncoder::BpeEncoder(const Vocabulary* vocabulary, const AddedTokenMatcher* user_defined,
                       BpeMerges merges, std::unique_ptr<PreTokenizer> pre_tokenizer,
                       int32_t unknown_id)
    : MergeEncoder(vocabulary, user_defined, std::move(merges), std::move(pre_tokenizer)) {
  if (vocabulary->HasByteIds(kReplacementCharacter)) {
    for (char c : kReplacementCharacter) {
      replacement_.push_back(vocabulary->ByteId(static_cast<uint8_t>(c)));
    }
  } else if (unknown_id >= 0) {
    replacement_.push_back(unknown_id);
  }
}

void BpeEncoder::FillSymbols(absl::string_view piece, BpeSymbols* symbols) const {
  while (!piece.empty()) {
    const absl::string_view character = piece.substr(0, NextUtf8Part(piece).length);
    piece.remove_prefix(character.size());
    if (vocabulary().HasByteIds(character)) {
      for (char c : character) symbols->Push(vocabulary().ByteId(static_cast<uint8_t>(c)));
    } else {
      for (int32_t id : replacement_) symbols->Push(id);
    }
  }
}

}  // namespace llm
