// Cuts are found by radix selection on the ordered bits of the logits: three passes, no sort,
// memory independent of the row.
#include "src/sampling/logits_processors.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace llm {
namespace {

constexpr int kBinBits = 11;  // three levels cover 32 bits with 2,048 bins, 16 KiB of sums: they
                              // stay in the first cache

using Bins = std::array<uint64_t, 1 << kBinBits>;

// Which part of the key a level looks at: keys whose bits above `shift + bits` equal `prefix` fall
// into bins.
struct Level {
  int shift;
  int bits;
};
constexpr Level kLevels[] = {{21, 11}, {10, 11}, {0, 10}};

bool InPrefix(uint32_t key, uint32_t prefix, const Level& level) {
  return level.shift + level.bits == 32 || key >> (level.shift + level.bits) == prefix;
}
size_t Bin(uint32_t key, const Level& level) {
  return (key >> level.shift) & ((1u << level.bits) - 1);
}

// The highest bin at which the sum from above reaches `target`, which the sum of all does. Takes
// off `target` what lies above.
uint32_t CrossingBin(const Bins& bins, uint64_t* target) {
  size_t bin = bins.size() - 1;
  while (bin > 0 && bins[bin] < *target) *target -= bins[bin--];
  return static_cast<uint32_t>(bin);
}

}  // namespace

Cut Stricter(const Cut& a, const Cut& b) {
  if (a.key != b.key) return a.key > b.key ? a : b;
  return a.num_ties < b.num_ties ? a : b;
}

void WeighBlock(const float* logits, const Weigher& weigher, float* weights) {
  const Weigher local = weigher;
  for (size_t i = 0; i < kVocabBlock; ++i) weights[i] = local(logits[i]);
}

Cut TopKCut(absl::Span<const float> logits, int64_t k) {
  if (k >= static_cast<int64_t>(logits.size())) return Cut();
  uint64_t target = static_cast<uint64_t>(k);
  uint32_t prefix = 0;
  for (const Level& level : kLevels) {
    Bins bins{};
    for (float logit : logits) {
      const uint32_t key = OrderedKey(logit);
      if (InPrefix(key, prefix, level)) ++bins[Bin(key, level)];
    }
    prefix = prefix << level.bits | CrossingBin(bins, &target);
  }
  return Cut{prefix, static_cast<int64_t>(target)};
}

// The first level weighs the whole row, block by block; the others only the ids that share the
// crossing bin.
Cut TopPCut(absl::Span<const float> logits, const Cut& kept, const Weigher& weigher, double p) {
  Bins bins{};
  CutFilter filter(kept);
  std::array<float, kVocabBlock> weights;
  uint64_t total = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kVocabBlock) {
    const size_t length = std::min(kVocabBlock, logits.size() - begin);
    const bool whole = length == kVocabBlock && kept.key == 0;
    if (whole) WeighBlock(&logits[begin], weigher, weights.data());
    for (size_t i = 0; i < length; ++i) {
      const float logit = logits[begin + i];
      if (!whole) weights[i] = filter.Keeps(logit) ? weigher(logit) : 0.0f;
      const uint64_t weight = WholeWeight(weights[i]);
      bins[Bin(OrderedKey(logit), kLevels[0])] += weight;
      total += weight;
    }
  }
  uint64_t target = TopPTarget(p, total);
  uint32_t prefix = CrossingBin(bins, &target);
  for (const Level& level : {kLevels[1], kLevels[2]}) {
    bins.fill(0);
    filter = CutFilter(kept);
    for (float logit : logits) {
      const uint32_t key = OrderedKey(logit);
      if (!filter.Keeps(logit) || !InPrefix(key, prefix, level)) continue;
      bins[Bin(key, level)] += WholeWeight(weigher(logit));
    }
    prefix = prefix << level.bits | CrossingBin(bins, &target);
  }
  // Equal keys have equal weights: the last bin holds a whole number of one weight.
  const uint64_t weight = WholeWeight(weigher(LogitOfKey(prefix)));
  if (weight == 0) return kept;  // not the row's maximum
  return Stricter(kept, Cut{prefix, static_cast<int64_t>((target + weight - 1) / weight)});
}

Cut MinPCut(const Weigher& weigher, float min_p) {
  return Cut{MinPKey(weigher, std::log(std::min(min_p, 1.0f))), INT64_MAX};
}

}  // namespace llm
