// Sums over choices, and their seeds.
#include "src/engine/choices.h"

#include <algorithm>

namespace llm {
namespace {

// The finalizer of MurmurHash3 (Appleby, 2011): a bijection that changes half of the bits for each.
uint64_t Scramble(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

}  // namespace

// The seed is scrambled before the choice is added, so that neighbouring seeds share no choices.
uint64_t ChoiceSeed(uint64_t seed, uint32_t choice) {
  return choice == 0 ? seed : Scramble(Scramble(seed + 0x9e3779b97f4a7c15u) + choice);
}

void ChoiceGroup::Add(const FinishRecord& ended, const absl::Status& status) {
  const FinishRecord before = finish;
  finish.stats = ended.stats;  // whose times are the last ones
  RequestStats& stats = finish.stats;
  stats.generated_tokens += before.stats.generated_tokens;
  stats.cached_tokens += before.stats.cached_tokens;
  stats.preemptions += before.stats.preemptions;
  stats.recomputed_tokens += before.stats.recomputed_tokens;
  stats.longest_gap_ns = std::max(stats.longest_gap_ns, before.stats.longest_gap_ns);
  if (before.stats.ttft_ns >= 0) {
    stats.ttft_ns =
        stats.ttft_ns < 0 ? before.stats.ttft_ns : std::min(stats.ttft_ns, before.stats.ttft_ns);
  }
  if (ended.choice != 0) stats.seed = before.stats.seed;
  const auto failed = [](const FinishRecord& record) {
    return record.reason != FinishReason::kNone && record.status != absl::StatusCode::kOk;
  };
  const bool first = before.reason == FinishReason::kNone || ended.choice < before.choice;
  if (failed(ended) != failed(before) ? failed(ended) : first) {
    finish.reason = ended.reason;
    finish.status = ended.status;
    finish.stop_index = ended.stop_index;
    finish.choice = ended.choice;
    end_status = status;
  }
}

}  // namespace llm
