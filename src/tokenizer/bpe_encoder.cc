// Cuts the text into pieces, and each piece into bytes; bpe_symbols.cc joins them.
#include "src/tokenizer/bpe_encoder.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/tokenizer/nfc.h"
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
    : vocabulary_(vocabulary),
      user_defined_(user_defined),
      merges_(std::move(merges)),
      pre_tokenizer_(std::move(pre_tokenizer)) {
  if (vocabulary_->HasByteIds(kReplacementCharacter)) {
    for (char c : kReplacementCharacter) {
      replacement_.push_back(vocabulary_->ByteId(static_cast<uint8_t>(c)));
    }
  } else if (unknown_id >= 0) {
    replacement_.push_back(unknown_id);
  }
}

absl::Status BpeEncoder::Encode(absl::string_view text, bool /*at_start*/,
                                std::vector<int32_t>* ids) const {
  Scratch scratch;
  LLM_ASSIGN_OR_RETURN(scratch.split, pre_tokenizer_->NewScratch());
  size_t begin = 0;
  for (size_t at = 0; at < text.size() && !user_defined_->empty();) {
    const int32_t id = user_defined_->MatchPrefix(text.substr(at));
    if (id < 0) {
      ++at;
      continue;
    }
    LLM_RETURN_IF_ERROR(EncodePlain(text.substr(begin, at - begin), &scratch, ids));
    ids->push_back(id);
    at += vocabulary_->Bytes(id).size();
    begin = at;
  }
  return EncodePlain(text.substr(begin), &scratch, ids);
}

absl::Status BpeEncoder::EncodePlain(absl::string_view text, Scratch* scratch,
                                     std::vector<int32_t>* ids) const {
  if (text.empty()) return absl::OkStatus();
  if (pre_tokenizer_->normalizes_to_nfc() && MayNeedNfc(text)) {
    scratch->normalized = NormalizeToNfc(text);
    text = scratch->normalized;
  }
  LLM_RETURN_IF_ERROR(pre_tokenizer_->Split(text, &scratch->split, &scratch->pieces));
  for (absl::string_view piece : scratch->pieces) EncodePiece(piece, scratch, ids);
  return absl::OkStatus();
}

void BpeEncoder::EncodePiece(absl::string_view piece, Scratch* scratch,
                             std::vector<int32_t>* ids) const {
  if (pre_tokenizer_->prefers_whole_pieces()) {
    const int32_t id = vocabulary_->FindPiece(piece);
    if (id >= 0) return ids->push_back(id);
  }
  FillSymbols(piece, &scratch->symbols);
  scratch->symbols.Merge(merges_);
  scratch->symbols.AppendIds(ids);
}

void BpeEncoder::FillSymbols(absl::string_view piece, BpeSymbols* symbols) const {
  symbols->Clear();
  while (!piece.empty()) {
    const absl::string_view character = piece.substr(0, NextUtf8Part(piece).length);
    piece.remove_prefix(character.size());
    if (vocabulary_->HasByteIds(character)) {
      for (char c : character) symbols->Push(vocabulary_->ByteId(static_cast<uint8_t>(c)));
    } else {
      for (int32_t id : replacement_) symbols->Push(id);
    }
  }
}

}  // namespace llm
