// A target that was not stated is met.
#include "src/engine/targets.h"

namespace llm {

bool TargetCounters::Count(const Request& asked, const FinishRecord& finish) {
  if (finish.reason == FinishReason::kCancelled) return false;
  const RequestStats& stats = finish.stats;
  bool all = finish.status == absl::StatusCode::kOk;
  const auto count = [&](Target target, bool was_stated, bool was_met) {
    if (!was_stated) return;
    const size_t i = static_cast<size_t>(target);
    ++stated[i];
    if (was_met) ++met[i];
    all &= was_met;
  };
  count(Target::kFirstToken, asked.first_token_deadline_ns != 0,
        stats.ttft_ns >= 0 && stats.ttft_ns <= asked.first_token_deadline_ns - asked.arrival_ns);
  // A step that was to take the target may take a little longer.
  count(Target::kTokenGap, asked.token_gap_target_ns != 0,
        stats.ttft_ns >= 0 && stats.longest_gap_ns / 5 <= asked.token_gap_target_ns / 4);
  count(Target::kCompletion, asked.completion_deadline_ns != 0,
        finish.status == absl::StatusCode::kOk &&
            stats.total_ns <= asked.completion_deadline_ns - asked.arrival_ns);
  if (!all) return false;
  ++good_requests;
  good_tokens += static_cast<uint64_t>(stats.generated_tokens);
  return true;
}

}  // namespace llm
