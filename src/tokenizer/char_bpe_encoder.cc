// Spaces are spaces here: the vocabulary has resolved U+2581, and the text's are resolved before it
// is cut.
#include "src/tokenizer/char_bpe_encoder.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "src/base/status_macros.h"
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
    : MergeEncoder(vocabulary, user_defined, std::move(merges), std::move(pre_tokenizer)),
      space_prefix_(spec.space_prefix),
      unknown_id_(spec.unknown_id),
      fuse_unknown_(spec.fuse_unknown) {}

absl::string_view CharBpeEncoder::Normalize(absl::string_view text, bool at_start,
                                            std::string* storage) const {
  std::string result;
  const bool starts_with_space = text[0] == ' ' || text.substr(0, 3) == "\xE2\x96\x81";
  const bool prefix = space_prefix_ == SpacePrefix::kAlways ||
                      (space_prefix_ == SpacePrefix::kUnlessSpace && !starts_with_space) ||
                      (space_prefix_ == SpacePrefix::kFirst && !starts_with_space && at_start);
  if (prefix) result += ' ';
  result += absl::StrReplaceAll(text, {{"\xE2\x96\x81", " "}});
  *storage = std::move(result);
  return InNfc(*storage, storage);
}

void CharBpeEncoder::FillSymbols(absl::string_view piece, BpeSymbols* symbols) const {
  bool after_unknown = false;
  while (!piece.empty()) {
    const absl::string_view character = piece.substr(0, NextUtf8Part(piece).length);
    piece.remove_prefix(character.size());
    const int32_t id = vocabulary().FindPiece(character);
    const bool unknown = id < 0 && !vocabulary().HasByteIds(character);
    if (id >= 0) {
      symbols->Push(id);
    } else if (!unknown) {
      for (const char c : character) symbols->Push(vocabulary().ByteId(static_cast<uint8_t>(c)));
    } else if (unknown_id_ >= 0 && !(fuse_unknown_ && after_unknown)) {
      symbols->Push(unknown_id_);
    }
    after_unknown = unknown;
  }
}

}  // namespace llm
