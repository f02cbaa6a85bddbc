// Histograms with fixed edges, as plain arrays: adding is a search and three additions, a copy is a
// memcpy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace llm {

// Numbered as LLM_HISTOGRAM_* (capi/abi_layout.cc asserts it). Times are in ns.
enum class HistogramId : uint32_t {
  kStepTokens = 0,       // scheduled in a step
  kStepSequences = 1,    // the batch that a step achieved
  kQueueTime = 2,        // submit to first scheduled
  kTtft = 3,             // submit to first token
  kTokenGap = 4,         // between a request's tokens
  kCompletionTime = 5,   // submit to end, whatever the reason
  kPrefillTime = 6,      // first scheduled to first token
  kDecodeTime = 7,       // first token to end
  kPromptTokens = 8,     // of a request that ended
  kGeneratedTokens = 9,  // likewise
  kRetainedTokens = 10,  // left in the prefix cache by a sequence that gave up its blocks
  kVictimTokens = 11,    // computed ones of a preempted sequence
};
inline constexpr size_t kNumHistograms = 12;
inline constexpr size_t kMaxHistogramEdges = 23;

// Inclusive upper edges, rising. Values above the last one fall into one more bucket.
absl::Span<const uint64_t> HistogramEdges(HistogramId id);

struct Histogram {
  uint64_t count = 0;
  uint64_t sum = 0;
  std::array<uint64_t, kMaxHistogramEdges + 1>
      buckets{};  // not cumulative; of the edges in use, then the rest
};

// A time on a replaceable clock: one that runs backwards counts as 0.
inline uint64_t CountedNs(int64_t ns) { return ns < 0 ? 0 : static_cast<uint64_t>(ns); }
// `histogram` is one of `id`.
void AddValue(HistogramId id, uint64_t value, Histogram* histogram);

class Histograms {
 public:
  void Add(HistogramId id, uint64_t value) { AddValue(id, value, &all_[static_cast<size_t>(id)]); }
  void AddTime(HistogramId id, int64_t ns) { Add(id, CountedNs(ns)); }
  const Histogram& Of(HistogramId id) const { return all_[static_cast<size_t>(id)]; }

 private:
  std::array<Histogram, kNumHistograms> all_{};
};

}  // namespace llm
