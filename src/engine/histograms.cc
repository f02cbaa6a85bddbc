// The edges. Those of times are vLLM's, so that dashboards and alerts made for it fit.
#include "src/engine/histograms.h"

#include <algorithm>

namespace llm {
namespace {

constexpr uint64_t kMs = 1'000'000;

constexpr uint64_t kStepTokens[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr uint64_t kSequences[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr uint64_t kTokens[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                                1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
constexpr uint64_t kTtft[] = {1 * kMs,      5 * kMs,      10 * kMs,    20 * kMs,    40 * kMs,
                              60 * kMs,     80 * kMs,     100 * kMs,   250 * kMs,   500 * kMs,
                              750 * kMs,    1000 * kMs,   2500 * kMs,  5000 * kMs,  7500 * kMs,
                              10000 * kMs,  20000 * kMs,  40000 * kMs, 80000 * kMs, 160000 * kMs,
                              640000 * kMs, 2560000 * kMs};
constexpr uint64_t kTokenGap[] = {10 * kMs,    25 * kMs,    50 * kMs,    75 * kMs,   100 * kMs,
                                  150 * kMs,   200 * kMs,   300 * kMs,   400 * kMs,  500 * kMs,
                                  750 * kMs,   1000 * kMs,  2500 * kMs,  5000 * kMs, 7500 * kMs,
                                  10000 * kMs, 20000 * kMs, 40000 * kMs, 80000 * kMs};
constexpr uint64_t kRequestTime[] = {
    300 * kMs,    500 * kMs,     800 * kMs,    1000 * kMs,   1500 * kMs,   2000 * kMs,
    2500 * kMs,   5000 * kMs,    10000 * kMs,  15000 * kMs,  20000 * kMs,  30000 * kMs,
    40000 * kMs,  50000 * kMs,   60000 * kMs,  120000 * kMs, 240000 * kMs, 480000 * kMs,
    960000 * kMs, 1920000 * kMs, 7680000 * kMs};

}  // namespace

absl::Span<const uint64_t> HistogramEdges(HistogramId id) {
  switch (id) {
    case HistogramId::kStepTokens:
      return kStepTokens;
    case HistogramId::kStepSequences:
      return kSequences;
    case HistogramId::kTtft:
      return kTtft;
    case HistogramId::kTokenGap:
      return kTokenGap;
    case HistogramId::kQueueTime:
    case HistogramId::kCompletionTime:
    case HistogramId::kPrefillTime:
    case HistogramId::kDecodeTime:
      return kRequestTime;
    case HistogramId::kPromptTokens:
    case HistogramId::kGeneratedTokens:
    case HistogramId::kRetainedTokens:
    case HistogramId::kVictimTokens:
      return kTokens;
  }
  return {};
}

void AddValue(HistogramId id, uint64_t value, Histogram* histogram) {
  const absl::Span<const uint64_t> edges = HistogramEdges(id);
  const auto bucket = std::lower_bound(edges.begin(), edges.end(), value) - edges.begin();
  ++histogram->count;
  histogram->sum += value;
  ++histogram->buckets[static_cast<size_t>(bucket)];
}

}  // namespace llm
