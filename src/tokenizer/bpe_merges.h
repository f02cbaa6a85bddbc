// The merge rules of a byte-level BPE model, by the pair of tokens that they join.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/base/text_list.h"
#include "src/tokenizer/index_table.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

struct BpeMerge {
  int32_t left;
  int32_t right;
  int32_t result;
};

// How the texts of merges are spelled, as those of tokens.
enum class MergeTexts { kByteAlphabet, kSpaceMarks };

class BpeMerges {
 public:
  static constexpr uint32_t kNone = IndexTable::kNone;

  // `merges`: "left right", the most important first; of two equal ones the first counts.
  // INVALID_ARGUMENT for one that is malformed or that names, or gives, no token.
  static absl::StatusOr<BpeMerges> Create(const Vocabulary& vocabulary, const TextList& merges,
                                          MergeTexts texts = MergeTexts::kByteAlphabet);

  // The rank of the merge of two tokens (lower merges earlier), or kNone.
  uint32_t FindRank(int32_t left, int32_t right) const;
  const BpeMerge& merge(uint32_t rank) const { return merges_[rank]; }
  size_t size_bytes() const { return merges_.capacity() * sizeof(BpeMerge) + index_.size_bytes(); }

 private:
  explicit BpeMerges(size_t num_merges) : index_(num_merges) { merges_.reserve(num_merges); }

  bool Joins(uint32_t rank, int32_t left, int32_t right) const {
    return merges_[rank].left == left && merges_[rank].right == right;
  }

  std::vector<BpeMerge> merges_;  // by rank
  uint64_t seed_ = 0;
  IndexTable index_;
};

}  // namespace llm
