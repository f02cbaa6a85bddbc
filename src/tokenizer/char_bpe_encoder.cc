// Spaces are spaces here: the vocabulary has resolved U+2581, and the text's are resolved before it
// is cut.
#include "src/tokenizer/char_bpe_encoder.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/nfc.h"
#include "src/tokenizer/utf8.h"

namespace llm {

absl::StatusOr<std::unique_ptr<TextEncoder>> CharBpeEncoder::Create(
    const TokenizerSpec& spec, const TextList& merges, const Vocabulary* vocabulary,
    const AddedTokenMatcher* user_defined) {
  LLM_ASSIGN_OR_RETURN(auto pre_tokenizer, PreTokenizer::Create(spec.split_rule));
  LLM_ASSIGN_OR_RETURN(BpeMerges table,
                       BpeMerges::Create(*vocabulary, merges, MergeTexts::kSpaceMarks));
  return std::unique_ptr<TextEncoder>(new CharBpeEncoder(
      spec, vocabulary, user_defined, std::move(table), std::move(pre_tokenizer)));
}

CharBpeEncoder::CharBpeEncoder(const TokenizerSpec& spec, const Vocabulary* vocabulary,
                               const AddedTokenMatcher* user_defined, BpeMerges merges,
                               std::unique_ptr<PreTokenizer> pre_tokenizer)
    : vocabulary_(vocabulary),
      user_defined_(user_defined),
      merges_(std::move(merges)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      space_prefix_(spec.space_prefix),
      unknown_id_(spec.unknown_id),
      fuse_unknown_(spec.fuse_unknown) {}

absl::Status CharBpeEncoder::Encode(absl::string_view text, bool at_start,
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
    LLM_RETURN_IF_ERROR(
        EncodePlain(text.substr(begin, at - begin), at_start && begin == 0, &scratch, ids));
    ids->push_back(id);
    at += vocabulary_->Bytes(id).size();
    begin = at;
  }
  return EncodePlain(text.substr(begin), at_start && begin == 0, &scratch, ids);
}

absl::Status CharBpeEncoder::EncodePlain(absl::string_view text, bool at_start, Scratch* scratch,
                                         std::vector<int32_t>* ids) const {
  if (text.empty()) return absl::OkStatus();
  scratch->normalized = Normalize(text, at_start);
  LLM_RETURN_IF_ERROR(
      pre_tokenizer_->Split(scratch->normalized, &scratch->split, &scratch->pieces));
  for (absl::string_view piece : scratch->pieces) EncodePiece(piece, scratch, ids);
  return absl::OkStatus();
}

std::string CharBpeEncoder::Normalize(absl::string_view text, bool at_start) const {
  std::string result;
  const bool starts_with_space = text[0] == ' ' || text.substr(0, 3) == "\xE2\x96\x81";
  const bool prefix = space_prefix_ == SpacePrefix::kAlways ||
                      (space_prefix_ == SpacePrefix::kUnlessSpace && !starts_with_space) ||
                      (space_prefix_ == SpacePrefix::kFirst && !starts_with_space && at_start);
  if (prefix) result += ' ';
  result += absl::StrReplaceAll(text, {{"\xE2\x96\x81", " "}});
  if (pre_tokenizer_->normalizes_to_nfc() && MayNeedNfc(result)) return NormalizeToNfc(result);
  return result;
}

void CharBpeEncoder::EncodePiece(absl::string_view piece, Scratch* scratch,
                                 std::vector<int32_t>* ids) const {
  if (pre_tokenizer_->prefers_whole_pieces()) {
    const int32_t id = vocabulary_->FindPiece(piece);
    if (id >= 0) return ids->push_back(id);
  }
  FillSymbols(piece, &scratch->symbols);
  scratch->symbols.Merge(merges_);
  scratch->symbols.AppendIds(ids);
}

void CharBpeEncoder::FillSymbols(absl::string_view piece, BpeSymbols* symbols) const {
  symbols->Clear();
  bool after_unknown = false;
  while (!piece.empty()) {
    const absl::string_view character = piece.substr(0, NextUtf8Part(piece).length);
    piece.remove_prefix(character.size());
    const int32_t id = vocabulary_->FindPiece(character);
    const bool unknown = id < 0 && !vocabulary_->HasByteIds(character);
    if (id >= 0) {
      symbols->Push(id);
    } else if (!unknown) {
      for (const char c : character) symbols->Push(vocabulary_->ByteId(static_cast<uint8_t>(c)));
    } else if (unknown_id_ >= 0 && !(fuse_unknown_ && after_unknown)) {
      symbols->Push(unknown_id_);
    }
    after_unknown = unknown;
  }
}

}  // namespace llm
