// The same list and heap as byte-level BPE, over texts instead of ids: a pair may join when the
// vocabulary has its text.
#include "src/tokenizer/spm_encoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_replace.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

constexpr int32_t kEnd = -1;

// The best score first, and of equal scores the leftmost.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.score != b.score ? a.score < b.score : a.left > b.left;
};

bool HasAllByteIds(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    if (vocabulary.ByteId(static_cast<uint8_t>(byte)) < 0) return false;
  }
  return true;
}

std::string CollapseSpaces(absl::string_view text) {
  std::string result;
  for (char c : text) {
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextEncoder>> SpmEncoder::Create(
    TokenizerSpec* spec, const Vocabulary* vocabulary, const AddedTokenMatcher* user_defined) {
  std::unique_ptr<SpmEncoder> encoder(new SpmEncoder(spec, vocabulary, user_defined));
  if (encoder->unknown_id_ < 0 && !HasAllByteIds(*vocabulary)) {
    return absl::InvalidArgumentError(
        "tokenizer: the vocabulary has neither 256 byte tokens nor an unknown token");
  }
  return encoder;
}

SpmEncoder::SpmEncoder(TokenizerSpec* spec, const Vocabulary* vocabulary,
                       const AddedTokenMatcher* user_defined)
    : vocabulary_(vocabulary),
      user_defined_(user_defined),
      scores_(std::move(spec->scores)),
      unknown_id_(spec->unknown_id),
      add_space_prefix_(spec->add_space_prefix),
      remove_extra_whitespaces_(spec->remove_extra_whitespaces) {
  spec->scores = std::vector<float>();
  for (size_t id = 0; id < spec->types.size(); ++id) {
    const TokenType type = spec->types[id];
    if (type == TokenType::kUnused) unused_ids_.push_back(static_cast<int32_t>(id));
    if (type == TokenType::kUnknown && unknown_id_ < 0) unknown_id_ = static_cast<int32_t>(id);
  }
}

absl::Status SpmEncoder::Encode(absl::string_view text, bool /*at_start*/,
                                std::vector<int32_t>* ids) const {
  Scratch scratch;
  const std::string normalized = Normalize(text);
  for (absl::string_view rest = normalized; !rest.empty();) {
    scratch.text = rest.substr(0, SegmentLength(rest));
    rest.remove_prefix(scratch.text.size());
    FillSymbols(&scratch);
    MergeSymbols(&scratch);
    AppendIds(scratch, ids);
  }
  return absl::OkStatus();
}

// Segments cannot influence each other, so the result is that of the whole text, while list and
// heap stay in the cache: in most vocabularies no piece has a letter before a space, and a segment
// is a word.
size_t SpmEncoder::SegmentLength(absl::string_view text) const {
  size_t end = 1;
  for (; end < text.size(); ++end) {
    const uint8_t byte = static_cast<uint8_t>(text[end]);
    const bool inside_character = (byte & 0xC0u) == 0x80u;
    if (!inside_character && !vocabulary_->HasPair(static_cast<uint8_t>(text[end - 1]), byte))
      break;
  }
  return end;
}

// A written U+2581 is a space to SentencePiece, too.
std::string SpmEncoder::Normalize(absl::string_view text) const {
  std::string result = absl::StrReplaceAll(text, {{"\xE2\x96\x81", " "}});
  if (remove_extra_whitespaces_) result = CollapseSpaces(result);
  if (add_space_prefix_ && !result.empty()) result.insert(result.begin(), ' ');
  return result;
}

void SpmEncoder::FillSymbols(Scratch* scratch) const {
  const absl::string_view text = scratch->text;
  std::vector<Symbol>& symbols = scratch->symbols;
  symbols.clear();
  for (size_t at = 0; at < text.size();) {
    const absl::string_view rest = text.substr(at);
    int32_t id = user_defined_->MatchPrefix(rest);
    const bool frozen = id >= 0;
    const size_t length = frozen ? vocabulary_->Bytes(id).size() : NextUtf8Part(rest).length;
    if (!frozen) id = vocabulary_->FindPiece(rest.substr(0, length));
    const int32_t index = static_cast<int32_t>(symbols.size());
    symbols.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(length), id, index - 1,
                       index + 1, frozen});
    at += length;
  }
  if (!symbols.empty()) symbols.back().next = kEnd;
}

void SpmEncoder::PushCandidate(int32_t left, Scratch* scratch) const {
  if (left == kEnd) return;
  const Symbol& first = scratch->symbols[static_cast<size_t>(left)];
  if (first.next == kEnd) return;
  const Symbol& second = scratch->symbols[static_cast<size_t>(first.next)];
  const uint32_t length = first.length + second.length;
  if (first.frozen || second.frozen || length > vocabulary_->max_piece_bytes()) return;
  const int32_t id = vocabulary_->FindPiece(scratch->text.substr(first.begin, length));
  if (id < 0) return;
  if (IsUnused(id)) scratch->unused_left_length[id] = first.length;
  scratch->heap.push_back({scores_[static_cast<size_t>(id)], left, length});
  std::push_heap(scratch->heap.begin(), scratch->heap.end(), kLater);
}

void SpmEncoder::MergeSymbols(Scratch* scratch) const {
  std::vector<Symbol>& symbols = scratch->symbols;
  std::vector<Candidate>& heap = scratch->heap;  // empty between segments
  for (int32_t i = 0; i < static_cast<int32_t>(symbols.size()); ++i) PushCandidate(i, scratch);
  while (!heap.empty()) {
    const Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), kLater);
    heap.pop_back();
    Symbol& left = symbols[static_cast<size_t>(best.left)];
    if (left.length == 0 || left.next == kEnd) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (left.length + right.length != best.length) continue;
    left.length = best.length;
    left.id = vocabulary_->FindPiece(scratch->text.substr(left.begin, left.length));
    right.length = 0;
    left.next = right.next;
    if (left.next != kEnd) symbols[static_cast<size_t>(left.next)].prev = best.left;
    PushCandidate(left.prev, scratch);
    PushCandidate(best.left, scratch);
  }
}

void SpmEncoder::AppendIds(const Scratch& scratch, std::vector<int32_t>* ids) const {
  const absl::string_view text = scratch.text;
  for (int32_t i = scratch.symbols.empty() ? kEnd : 0; i != kEnd;) {
    const Symbol& symbol = scratch.symbols[static_cast<size_t>(i)];
    const absl::string_view piece = text.substr(symbol.begin, symbol.length);
    if (symbol.id < 0) {
      AppendCharacter(piece, ids);
    } else if (IsUnused(symbol.id)) {
      AppendUnused(piece, scratch, ids);
    } else {
      ids->push_back(symbol.id);
    }
    i = symbol.next;
  }
}

// An unused piece served as a step towards a larger one that did not come about: it falls apart
// again as it was made.
void SpmEncoder::AppendUnused(absl::string_view piece, const Scratch& scratch,
                              std::vector<int32_t>* ids) const {
  std::vector<absl::string_view> stack = {piece};
  while (!stack.empty()) {
    const absl::string_view top = stack.back();
    stack.pop_back();
    const int32_t id = vocabulary_->FindPiece(top);
    const auto left = scratch.unused_left_length.find(id);
    if (id < 0) {
      AppendCharacter(top, ids);
    } else if (!IsUnused(id) || left == scratch.unused_left_length.end()) {
      ids->push_back(id);
    } else {
      stack.push_back(top.substr(left->second));
      stack.push_back(top.substr(0, left->second));
    }
  }
}

void SpmEncoder::AppendCharacter(absl::string_view character, std::vector<int32_t>* ids) const {
  if (vocabulary_->HasByteIds(character)) {
    for (char c : character) ids->push_back(vocabulary_->ByteId(static_cast<uint8_t>(c)));
  } else if (ids->empty() || ids->back() != unknown_id_) {
    ids->push_back(unknown_id_);  // SentencePiece gives one for a run of unknown characters
  }
}

bool SpmEncoder::IsUnused(int32_t id) const {
  return !unused_ids_.empty() && std::binary_search(unused_ids_.begin(), unused_ids_.end(), id);
}

}  // namespace llm
