// For given quants the best scale and minimum are those of a linear regression, so the search is
// for quants: those of some scales around the one that just covers the group, each followed by its
// regression, and from the best on quants and regression in turn until nothing gains.
//
// Sums go through eight lanes whose order is fixed: fast without the reassociation that would let
// the result depend on a compiler or a machine. Rounding is by a magic number, since SSE2 has no
// instruction for it.
#include "kernels/quant/fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/tensor/float_convert.h"

namespace llm {
namespace {

using Four = float __attribute__((vector_size(16)));  // operators work on each
constexpr int64_t kLanes = 8;                         // two of them
constexpr int kMaxRefinements = 8;
constexpr double kSmallest = 1e-12;    // of a scale: f16 has nothing below 3e-8, and f32 an inverse
constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: x + it is rounded to an integer, |x| < 2^22

// Sums over a group: of quants, of their squares, of quants times weights, ...
struct Moments {
  double q = 0, qq = 0, qx = 0;
};
struct Totals {
  double x = 0, xx = 0;
};

Four Load(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}
Four All(float x) { return Four{x, x, x, x}; }
Four Cut(Four x, float low, float high) {
  x = x < All(low) ? All(low) : x;
  return x > All(high) ? All(high) : x;
}

double Sum(const Four (&lanes)[2]) {
  const Four pairs = lanes[0] + lanes[1];
  return (double{pairs[0]} + double{pairs[2]}) + (double{pairs[1]} + double{pairs[3]});
}

Totals SumUp(const WeightGroup& group) {
  Four sum[2] = {}, squares[2] = {};
  for (int64_t i = 0; i < group.size; i += kLanes) {
    for (int half = 0; half < 2; ++half) {
      const Four x = Load(group.weights + i + 4 * half);
      sum[half] += x;
      squares[half] += x * x;
    }
  }
  return {Sum(sum), Sum(squares)};
}

// To whole numbers of [low, high].
struct ToInteger {
  float low, high;

  Four operator()(Four x) const { return (Cut(x, low, high) + kMagic) - kMagic; }
};

// To a float of 4 significant bits, or a multiple of 2^-9 below 2^-6.
struct ToE4M3 {
  Four operator()(Four x) const {
    constexpr float kLargest = 448, kSmallestNormal = 0x1p-6f;
    constexpr float kSplit = 0x1p20f + 1;              // keeps 24 - 20 bits (Veltkamp)
    constexpr float kSubnormal = 0x1.8p23f * 0x1p-9f;  // as kMagic, for 2^-9
    const Four cut = Cut(x, -kLargest, kLargest);
    const Four scaled = cut * kSplit;
    const Four normal = scaled - (scaled - cut);
    const Four subnormal = (cut + kSubnormal) - kSubnormal;
    return Cut(cut, -kSmallestNormal, kSmallestNormal) == cut ? subnormal : normal;
  }
};

// Of quants round(x * inverse + shift).
template <typename Round>
Moments Measure(const WeightGroup& group, float inverse, float shift, Round round) {
  Four sum[2] = {}, squares[2] = {}, products[2] = {};
  for (int64_t i = 0; i < group.size; i += kLanes) {
    for (int half = 0; half < 2; ++half) {
      const Four x = Load(group.weights + i + 4 * half);
      const Four q = round(x * inverse + shift);
      sum[half] += q;
      squares[half] += q * q;
      products[half] += q * x;
    }
  }
  return {Sum(sum), Sum(squares), Sum(products)};
}

constexpr float kLargestHalf = 65504;

struct Range {
  float min = 0, max = 0;
  bool usable = true;  // small enough for f16 and for squares; not a NaN
};
Range RangeOf(const WeightGroup& group) {
  Range range = {group.weights[0], group.weights[0]};
  for (int64_t i = 0; i < group.size; ++i) {
    const float x = group.weights[i];
    range.min = std::min(range.min, x);
    range.max = std::max(range.max, x);
    range.usable = range.usable && std::fabs(x) <= kLargestHalf;
  }
  return range;
}

float AsHalf(double value) { return F16ToF32(F32ToF16(static_cast<float>(value))); }

template <typename Round>
class ScaleSearch {
 public:
  ScaleSearch(const WeightGroup& group, Round round) : group_(group), round_(round) {}

  // Whether quants by `scale` give the best regression until now.
  bool Try(double scale) {
    if (!(std::fabs(scale) > kSmallest)) return false;
    const Moments m = Measure(group_, static_cast<float>(1 / scale), 0, round_);
    if (!(m.qq > 0)) return false;
    const double gain = m.qx * m.qx / m.qq;  // of the squares, what the regression explains
    if (!(gain > best_gain_)) return false;
    best_gain_ = gain;
    scale_ = m.qx / m.qq;
    return true;
  }
  void Refine() {
    for (int i = 0; i < kMaxRefinements && Try(scale_); ++i) {
    }
  }
  double scale() const { return scale_; }

 private:
  const WeightGroup& group_;
  const Round round_;
  double best_gain_ = 0;
  double scale_ = 0;
};

class AffineSearch {
 public:
  explicit AffineSearch(const WeightGroup& group) : group_(group), totals_(SumUp(group)) {}

  bool Try(double scale, double min) {
    if (!(scale > kSmallest)) return false;
    const double inverse = 1 / scale;
    const Moments m = Measure(group_, static_cast<float>(inverse),
                              static_cast<float>(-min * inverse), ToInteger{0, kHigh});
    const double determinant = size_ * m.qq - m.q * m.q;
    if (!(determinant > 0)) return false;
    const double new_scale = (size_ * m.qx - m.q * totals_.x) / determinant;
    const double new_min = (totals_.x - new_scale * m.q) / size_;
    const double error = totals_.xx - new_scale * m.qx - new_min * totals_.x;
    if (!(error < best_error_)) return false;
    best_error_ = error;
    scale_ = new_scale;
    min_ = new_min;
    return true;
  }
  void Refine() {
    for (int i = 0; i < kMaxRefinements && Try(scale_, min_); ++i) {
    }
  }
  AffineFit fit() const { return {AsHalf(scale_), AsHalf(min_)}; }

  static constexpr float kHigh = 15;

 private:
  const WeightGroup& group_;
  const Totals totals_;
  const double size_ = static_cast<double>(group_.size);
  double best_error_ = std::numeric_limits<double>::infinity();
  double scale_ = 0;
  double min_ = 0;
};

}  // namespace

float FitScale(const WeightGroup& group, int low, int high) {
  const Range range = RangeOf(group);
  if (!range.usable) return std::numeric_limits<float>::quiet_NaN();
  const double largest = std::max(-double{range.min}, double{range.max});
  ScaleSearch search(group, ToInteger{static_cast<float>(low), static_cast<float>(high)});
  // From scales that cut the largest weight to some that have room beyond it; with many quants to
  // go round, cutting much never pays. The side of the largest gets the longer half of the quants,
  // or the shorter: signs are tried both.
  constexpr int kFewQuants = 16;
  const bool few = high < kFewQuants;
  const int steps = few ? 12 : 24;
  const double from = few ? 0.8 : 0.9, to = few ? 1.1 : 1.02;
  const double most = std::max(-low, high);
  for (int i = 0; i <= steps; ++i) {
    const double reach = most * (from + (to - from) * i / steps);
    search.Try(largest / reach);
    if (low != -high) search.Try(-largest / reach);
  }
  search.Refine();
  return AsHalf(search.scale());
}

float FitE4M3Scale(const WeightGroup& group) {
  const Range range = RangeOf(group);
  if (!range.usable) return std::numeric_limits<float>::quiet_NaN();
  const double largest = std::max(-double{range.min}, double{range.max});
  ScaleSearch search(group, ToE4M3());
  // Twice the scale is the same grid but for the smallest weights: one octave has all there is.
  constexpr int kSteps = 12;
  constexpr double kStep = 1.0594630943592953;  // 2^(1/12)
  double scale = largest / 448;
  for (int i = 0; i < kSteps; ++i, scale *= kStep) search.Try(scale);
  search.Refine();
  return static_cast<float>(search.scale());
}

AffineFit FitAffine(const WeightGroup& group) {
  constexpr double kMoves[] = {-0.04, -0.02, 0, 0.02, 0.04, 0.06, 0.09};
  const Range range = RangeOf(group);
  if (!range.usable) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    return {nan, nan};
  }
  const double width = double{range.max} - double{range.min};
  AffineSearch search(group);
  // Each end of the range moves a little out, or in and cuts.
  for (const double from : kMoves) {
    for (const double to : kMoves) {
      search.Try(width * (1 - from - to) / AffineSearch::kHigh, range.min + width * from);
    }
  }
  search.Refine();
  const AffineFit fit = search.fit();
  return fit.scale > 0 ? fit : AffineFit{0, AsHalf(range.min)};
}

}  // namespace llm
