// A linked list of symbols and a heap of candidate merges: O(n log n), also for a megabyte without
// a space.
#include "src/tokenizer/bpe_encoder.h"

#include <algorithm>
#include <utility>

#include "src/base/status_macros.h"
#include "src/tokenizer/nfc.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

constexpr int32_t kDead = -1;
constexpr int32_t kEnd = -1;

}  // namespace

absl::StatusOr<std::unique_ptr<TextEncoder>> BpeEncoder::Create(
    const TokenizerSpec& spec, const TextList& merges, const Vocabulary* vocabulary,
    const AddedTokenMatcher* user_defined) {
  LLM_ASSIGN_OR_RETURN(auto pre_tokenizer, PreTokenizer::Create(spec.pre_tokenizer));
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

absl::Status BpeEncoder::Encode(absl::string_view text, std::vector<int32_t>* ids) const {
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
  MergeSymbols(scratch);
  for (const Symbol& symbol : scratch->symbols) {
    if (symbol.id != kDead) ids->push_back(symbol.id);
  }
}

void BpeEncoder::FillSymbols(absl::string_view piece, std::vector<Symbol>* symbols) const {
  symbols->clear();
  const auto push = [symbols](int32_t id) {
    const int32_t index = static_cast<int32_t>(symbols->size());
    symbols->push_back({id, index - 1, index + 1});
  };
  while (!piece.empty()) {
    const absl::string_view character = piece.substr(0, NextUtf8Part(piece).length);
    piece.remove_prefix(character.size());
    if (vocabulary_->HasByteIds(character)) {
      for (char c : character) push(vocabulary_->ByteId(static_cast<uint8_t>(c)));
    } else {
      for (int32_t id : replacement_) push(id);
    }
  }
  if (!symbols->empty()) symbols->back().next = kEnd;
}

namespace {

// The top of the heap is the lowest rank, and of equal ranks the leftmost.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
};

}  // namespace

void BpeEncoder::PushCandidate(int32_t left, Scratch* scratch) const {
  if (left == kEnd) return;
  const Symbol& symbol = scratch->symbols[static_cast<size_t>(left)];
  if (symbol.next == kEnd) return;
  const int32_t right_id = scratch->symbols[static_cast<size_t>(symbol.next)].id;
  const uint32_t rank = merges_.FindRank(symbol.id, right_id);
  if (rank == BpeMerges::kNone) return;
  scratch->heap.push_back({rank, left});
  std::push_heap(scratch->heap.begin(), scratch->heap.end(), kLater);
}

void BpeEncoder::MergeSymbols(Scratch* scratch) const {
  std::vector<Symbol>& symbols = scratch->symbols;
  std::vector<Candidate>& heap = scratch->heap;
  heap.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(symbols.size()); ++i) PushCandidate(i, scratch);
  while (!heap.empty()) {
    const Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), kLater);
    heap.pop_back();
    const BpeMerge& merge = merges_.merge(best.rank);
    Symbol& left = symbols[static_cast<size_t>(best.left)];
    // A candidate is stale when one of its symbols has been joined to another since.
    if (left.id != merge.left || left.next == kEnd) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != merge.right) continue;
    left.id = merge.result;
    right.id = kDead;
    left.next = right.next;
    if (left.next != kEnd) symbols[static_cast<size_t>(left.next)].prev = best.left;
    PushCandidate(left.prev, scratch);
    PushCandidate(best.left, scratch);
  }
}

}  // namespace llm
