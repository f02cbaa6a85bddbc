// The arithmetic by which tokens are drawn, of the host's sampler and of every backend, device code
// included. It has one result everywhere: f32 in a written order, and sums of integers, which have
// no order.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/philox.h"

namespace llm {

// A logit as an integer of the same order; both zeros are one.
constexpr uint32_t OrderedKey(float logit) {
  const uint32_t bits = std::bit_cast<uint32_t>(logit + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
// The logit that has this key.
constexpr float LogitOfKey(uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

// exp(x) for x <= 0, and 0 from -87 down, where a float has no normal numbers left. Relative error
// below 3e-7.
constexpr float NegativeExp(float x) {
  constexpr float kLowest = -87.0f;
  // x = n ln 2 + r with |r| <= ln 2 / 2. The added constant rounds to an integer; ln 2 is split so
  // that n ln 2 is exact.
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  const bool normal = x > kLowest;
  const float bounded = normal ? x : kLowest;
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

// exp((logit - max) / temperature): 1 for the maximum.
struct Weigher {
  float max = 0;
  float temperature = 1;
  constexpr float operator()(float logit) const {
    const float x = (logit - max) / temperature;
    return NegativeExp(x < 0.0f ? x : 0.0f);
  }
};

// A weight as a whole number, rounded down: the maximum has 2^40, so that 2^24 ids cannot overflow
// 64 bits, and what 262,144 ids lose by it, 2.4e-7 of the maximum, is what the exponential errs.
constexpr uint64_t WholeWeight(float weight) {
  return static_cast<uint64_t>(static_cast<int64_t>(weight * 0x1p40f));
}
inline constexpr int64_t kMaxDrawCols = 1 << 24;

// The sum of weights that the fewest, largest first, must reach for a share of p; at least 1.
constexpr uint64_t TopPTarget(double p, uint64_t total) {
  const double share = p * static_cast<double>(total);
  uint64_t target = static_cast<uint64_t>(share);
  if (static_cast<double>(target) < share) ++target;
  return target < 1 ? 1 : target < total ? target : total;
}

// The lowest key whose weight is at least exp(log_min_p) of the maximum's; -infinity keeps all.
constexpr uint32_t MinPKey(const Weigher& weigher, float log_min_p) {
  constexpr double kLowest = -3.4028234e38;
  const double threshold =
      static_cast<double>(weigher.max) +
      static_cast<double>(weigher.temperature) * static_cast<double>(log_min_p);
  if (!(threshold > -__builtin_inf())) return 0;
  const float nearest = static_cast<float>(threshold > kLowest ? threshold : kLowest);
  return OrderedKey(nearest) + (static_cast<double>(nearest) < threshold ? 1 : 0);
}

// The place in [0, total) that random bits name: bits / 2^64 of it, rounded down.
constexpr uint64_t PlaceOf(uint64_t bits, uint64_t total) {
  const uint64_t a0 = bits & 0xffffffffu, a1 = bits >> 32;
  const uint64_t b0 = total & 0xffffffffu, b1 = total >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffffu)) >> 32);
}

}  // namespace llm
