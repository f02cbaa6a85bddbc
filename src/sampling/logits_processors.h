// Which ids of a row may be drawn: top-k, top-p and min-p, each a cut through the ids in descending
// order of their logits.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/sample_math.h"

namespace llm {

// Keeps every id whose key is above `key`, and the first `num_ties` ids, by id, whose key equals
// it.
struct Cut {
  uint32_t key = 0;
  int64_t num_ties = INT64_MAX;  // the default keeps everything
};

// The cut that keeps less. Cuts through one order are nested, so this is their intersection.
Cut Stricter(const Cut& a, const Cut& b);

// Walks a row in id order and says which ids the cut keeps.
class CutFilter {
 public:
  explicit CutFilter(const Cut& cut) : key_(cut.key), ties_left_(cut.num_ties) {}
  bool Keeps(float logit) {
    const uint32_t key = OrderedKey(logit);
    if (key != key_) return key > key_;
    return ties_left_-- > 0;
  }

 private:
  uint32_t key_;
  int64_t ties_left_;
};

// Ids of one block of the vocabulary: its fixed length lets the compiler use vector registers.
inline constexpr size_t kVocabBlock = 256;
// weights[i] = weigher(logits[i]) for a whole block.
void WeighBlock(const float* logits, const Weigher& weigher, float* weights);

// The k largest, the lower id at a tie. 0 < k.
Cut TopKCut(absl::Span<const float> logits, int64_t k);
// The fewest, largest first, of those that `kept` keeps whose share of their weight is at least p;
// at least one.
Cut TopPCut(absl::Span<const float> logits, const Cut& kept, const Weigher& weigher, double p);
// Those whose weight is at least min_p of the largest one's.
Cut MinPCut(const Weigher& weigher, float min_p);

}  // namespace llm
