// A candidate is pushed when its pair comes about, and looked at again when it is its turn.
#include "src/tokenizer/bpe_symbols.h"

#include <algorithm>

namespace llm {
namespace {

// The top of the heap is the lowest rank, and of equal ranks the leftmost.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
};

}  // namespace

void BpeSymbols::Push(int32_t id) {
  const int32_t index = static_cast<int32_t>(symbols_.size());
  if (index > 0) symbols_.back().next = index;
  symbols_.push_back({id, index - 1, kEnd});
}

void BpeSymbols::PushCandidate(const BpeMerges& merges, int32_t left) {
  if (left == kEnd) return;
  const Symbol& symbol = symbols_[static_cast<size_t>(left)];
  if (symbol.next == kEnd) return;
  const int32_t right_id = symbols_[static_cast<size_t>(symbol.next)].id;
  const uint32_t rank = merges.FindRank(symbol.id, right_id);
  if (rank == BpeMerges::kNone) return;
  heap_.push_back({rank, left});
  std::push_heap(heap_.begin(), heap_.end(), kLater);
}

void BpeSymbols::Merge(const BpeMerges& merges) {
  heap_.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(symbols_.size()); ++i) PushCandidate(merges, i);
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    heap_.pop_back();
    const BpeMerge& merge = merges.merge(best.rank);
    Symbol& left = symbols_[static_cast<size_t>(best.left)];
    // A candidate is stale when one of its symbols has been joined to another since.
    if (left.id != merge.left || left.next == kEnd) continue;
    Symbol& right = symbols_[static_cast<size_t>(left.next)];
    if (right.id != merge.right) continue;
    left.id = merge.result;
    right.id = kDead;
    left.next = right.next;
    if (left.next != kEnd) symbols_[static_cast<size_t>(left.next)].prev = best.left;
    PushCandidate(merges, left.prev);
    PushCandidate(merges, best.left);
  }
}

void BpeSymbols::AppendIds(std::vector<int32_t>* ids) const {
  for (const Symbol& symbol : symbols_) {
    if (symbol.id != kDead) ids->push_back(symbol.id);
  }
}

}  // namespace llm
