// bpe_symbols.cc joins what the two kinds make of a piece.
#include "src/tokenizer/merge_encoder.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/tokenizer/nfc.h"

namespace llm {

MergeEncoder::MergeEncoder(const Vocabulary* vocabulary, const AddedTokenMatcher* user_defined,
                           BpeMerges merges, std::unique_ptr<PreTokenizer> pre_tokenizer)
    : vocabulary_(vocabulary),
      user_defined_(user_defined),
      merges_(std::move(merges)),
      pre_tokenizer_(std::move(pre_tokenizer)) {}

absl::string_view MergeEncoder::InNfc(absl::string_view text, std::string* storage) const {
  if (!pre_tokenizer_->normalizes_to_nfc() || !MayNeedNfc(text)) return text;
  *storage = NormalizeToNfc(text);
  return *storage;
}

absl::Status MergeEncoder::Encode(absl::string_view text, bool at_start,
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

absl::Status MergeEncoder::EncodePlain(absl::string_view text, bool at_start, Scratch* scratch,
                                       std::vector<int32_t>* ids) const {
  if (text.empty()) return absl::OkStatus();
  const absl::string_view normalized = Normalize(text, at_start, &scratch->normalized);
  LLM_RETURN_IF_ERROR(pre_tokenizer_->Split(normalized, &scratch->split, &scratch->pieces));
  for (absl::string_view piece : scratch->pieces) EncodePiece(piece, scratch, ids);
  return absl::OkStatus();
}

void MergeEncoder::EncodePiece(absl::string_view piece, Scratch* scratch,
                               std::vector<int32_t>* ids) const {
  if (pre_tokenizer_->prefers_whole_pieces()) {
    const int32_t id = vocabulary_->FindPiece(piece);
    if (id >= 0) return ids->push_back(id);
  }
  scratch->symbols.Clear();
  FillSymbols(piece, &scratch->symbols);
  scratch->symbols.Merge(merges_);
  scratch->symbols.AppendIds(ids);
}

}  // namespace llm
