// A row is compared with itself alone: outputs differ in size, and rows can be made one by one.
#include "src/model/prune.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace llm {
namespace {

constexpr int kRun = 4;

// How large a weight counts: one that is not finite is never pruned.
float Size(float weight) {
  return std::isnan(weight) ? std::numeric_limits<float>::infinity() : std::fabs(weight);
}

void KeepTwo(float* run) {
  int first = 0;
  for (int i = 1; i < kRun; ++i) {
    if (Size(run[i]) > Size(run[first])) first = i;
  }
  int second = first == 0 ? 1 : 0;
  for (int i = 0; i < kRun; ++i) {
    if (i != first && Size(run[i]) > Size(run[second])) second = i;
  }
  for (int i = 0; i < kRun; ++i) {
    if (i != first && i != second) run[i] = 0;
  }
}

void PruneSmallest(int64_t pruned, float* row, int64_t count) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int32_t a, int32_t b) {
    const float size_a = Size(row[a]), size_b = Size(row[b]);
    return size_a != size_b ? size_a < size_b : a > b;
  };
  std::nth_element(order.begin(), order.begin() + pruned, order.end(), before);
  for (int64_t i = 0; i < pruned; ++i) row[order[static_cast<size_t>(i)]] = 0;
}

}  // namespace

void Prune(Pruning pruning, float part, float* row, int64_t count) {
  if (pruning == Pruning::kTwoOfFour) {
    for (int64_t i = 0; i + kRun <= count; i += kRun) KeepTwo(row + i);
  } else if (pruning == Pruning::kMagnitude) {
    const auto pruned =
        static_cast<int64_t>(static_cast<double>(part) * static_cast<double>(count));
    PruneSmallest(std::clamp<int64_t>(pruned, 0, count), row, count);
  }
}

}  // namespace llm
