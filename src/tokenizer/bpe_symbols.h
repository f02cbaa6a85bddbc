// What one piece of text is while it is merged: a list of symbols that shrinks.
#pragma once

#include <cstdint>
#include <vector>

#include "src/tokenizer/bpe_merges.h"

namespace llm {

// A linked list and a heap of candidate merges: O(n log n), also for a megabyte without a space.
class BpeSymbols {
 public:
  void Clear() { symbols_.clear(); }
  void Push(int32_t id);
  // Joins pairs, the merge of the lowest rank first and of equal ones the leftmost, until none
  // applies.
  void Merge(const BpeMerges& merges);
  void AppendIds(std::vector<int32_t>* ids) const;

 private:
  struct Symbol {
    int32_t id;  // kDead once joined to the one before it
    int32_t prev;
    int32_t next;
  };
  struct Candidate {
    uint32_t rank;
    int32_t left;  // index of the left symbol
  };
  static constexpr int32_t kDead = -1;
  static constexpr int32_t kEnd = -1;

  void PushCandidate(const BpeMerges& merges, int32_t left);

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace llm
