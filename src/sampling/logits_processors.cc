// Cuts are found by radix selection on the ordered bits of the logits: three passes, no sort,
// memory independent of the row.
#include "src/sampling/logits_processors.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace llm {
namespace {

constexpr float kLowestExponent = -87.0f;
constexpr int kBinBits = 11;  // three levels cover 32 bits with 2,048 bins, 16 KiB of doubles: they
                              // stay in the first cache

using Bins = std::array<double, 1 << kBinBits>;

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

// The highest bin at which the sum from above reaches `target`, or the lowest bin that is not
// empty. Adds to `sum` what lies above the bin.
uint32_t CrossingBin(const Bins& bins, double target, double* sum) {
  uint32_t crossing = 0;
  double above = *sum;
  for (size_t bin = bins.size(); bin-- > 0;) {
    if (bins[bin] == 0) continue;
    crossing = static_cast<uint32_t>(bin);
    *sum = above;
    if (above + bins[bin] >= target) break;
    above += bins[bin];
  }
  return crossing;
}

// The ties that it takes, each of mass `mass`, to bring `sum` up to `target`; at least one.
int64_t TiesNeeded(double sum, double target, double mass) {
  const double needed = std::ceil((target - sum) / mass);
  return needed < 1 ? 1 : needed < 0x1p62 ? static_cast<int64_t>(needed) : INT64_MAX;
}

float Exp(float x) {
  // x = n ln 2 + r with |r| <= ln 2 / 2. The added constant rounds to an integer; ln 2 is split so
  // that n ln 2 is exact.
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  const bool normal = x > kLowestExponent;
  const float bounded = normal ? x : kLowestExponent;
  const float shifted = bounded * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;
  // The Taylor series; the first term left out is below 6e-9.
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  const int32_t exponent = static_cast<int32_t>(n) + 127;
  const float value = sum * std::bit_cast<float>(exponent << 23);
  return normal ? value : 0.0f;
}

inline float Weigh(float logit, float max, float temperature) {
  const float x = (logit - max) / temperature;
  return Exp(x < 0.0f ? x : 0.0f);
}

}  // namespace

Cut Stricter(const Cut& a, const Cut& b) {
  if (a.key != b.key) return a.key > b.key ? a : b;
  return a.num_ties < b.num_ties ? a : b;
}

float Weigher::operator()(float logit) const { return Weigh(logit, max, temperature); }

void WeighBlock(const float* logits, const Weigher& weigher, float* weights) {
  const float max = weigher.max;
  const float temperature = weigher.temperature;
  for (size_t i = 0; i < kVocabBlock; ++i) weights[i] = Weigh(logits[i], max, temperature);
}

Cut TopKCut(absl::Span<const float> logits, int64_t k) {
  if (k >= static_cast<int64_t>(logits.size())) return Cut();
  const double target = static_cast<double>(k);
  double sum = 0;
  uint32_t prefix = 0;
  for (const Level& level : kLevels) {
    Bins bins{};
    for (float logit : logits) {
      const uint32_t key = OrderedKey(logit);
      if (InPrefix(key, prefix, level)) bins[Bin(key, level)] += 1;
    }
    prefix = prefix << level.bits | CrossingBin(bins, target, &sum);
  }
  return Cut{prefix, TiesNeeded(sum, target, 1)};
}

// The first level weighs the whole row, block by block; the others only the ids that share the
// crossing bin.
Cut TopPCut(absl::Span<const float> logits, const Cut& kept, const Weigher& weigher, double p) {
  Bins bins{};
  CutFilter filter(kept);
  std::array<float, kVocabBlock> weights;
  for (size_t begin = 0; begin < logits.size(); begin += kVocabBlock) {
    const size_t length = std::min(kVocabBlock, logits.size() - begin);
    const bool whole = length == kVocabBlock && kept.key == 0;
    if (whole) WeighBlock(&logits[begin], weigher, weights.data());
    for (size_t i = 0; i < length; ++i) {
      const float logit = logits[begin + i];
      if (!whole) weights[i] = filter.Keeps(logit) ? weigher(logit) : 0.0f;
      bins[Bin(OrderedKey(logit), kLevels[0])] += static_cast<double>(weights[i]);
    }
  }
  double total = 0;
  for (size_t bin = bins.size(); bin-- > 0;) total += bins[bin];
  const double target = p * total;
  double sum = 0;
  uint32_t prefix = CrossingBin(bins, target, &sum);
  for (const Level& level : {kLevels[1], kLevels[2]}) {
    bins.fill(0);
    filter = CutFilter(kept);
    for (float logit : logits) {
      const uint32_t key = OrderedKey(logit);
      if (!filter.Keeps(logit) || !InPrefix(key, prefix, level)) continue;
      bins[Bin(key, level)] += weigher(logit);
    }
    prefix = prefix << level.bits | CrossingBin(bins, target, &sum);
  }
  // Equal keys have equal weights: the last bin holds a whole number of one weight.
  const uint32_t bits = (prefix & 0x80000000u) != 0 ? prefix & 0x7fffffffu : ~prefix;
  const float weight = weigher(std::bit_cast<float>(bits));
  if (weight == 0) return kept;
  return Stricter(kept, Cut{prefix, TiesNeeded(sum, target, weight)});
}

Cut MinPCut(const Weigher& weigher, float min_p) {
  const double threshold =
      static_cast<double>(weigher.max) +
      static_cast<double>(weigher.temperature) * std::log(std::min(min_p, 1.0f));
  if (!(threshold > -static_cast<double>(INFINITY))) return Cut();
  float lowest = static_cast<float>(std::max(threshold, -3.4028234e38));
  if (static_cast<double>(lowest) < threshold) lowest = std::nextafter(lowest, INFINITY);
  return Cut{OrderedKey(lowest), INT64_MAX};
}

}  // namespace llm
