// A simulated engine lives on a clock that its steps move, and that jumps where it has nothing to
// do.
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/engine.h"

namespace llm {
namespace {

// Sums of two times stay in range.
constexpr int64_t kMaxArrivalNs = std::numeric_limits<int64_t>::max() / 4;

}  // namespace

absl::Status Engine::CheckSimulable(const RequestSpec& spec) const {
  const char* asked = nullptr;
  if (spec.score != nullptr) asked = "a score";
  if (spec.embed != nullptr) asked = "an embedding";
  if (spec.sampling.num_logprobs >= 0) asked = "num_logprobs";
  if (spec.num_prompt_logprobs >= 0) asked = "num_prompt_logprobs";
  if (asked == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(asked, ": a simulated engine computes no logits"));
}

absl::Status Engine::AwaitArrival(int64_t arrival_ns) {
  if (parts_.virtual_clock == nullptr) {
    return absl::UnimplementedError("arrival_ns: only a simulated engine has it");
  }
  if (arrival_ns < 0 || arrival_ns > kMaxArrivalNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("arrival_ns: ", arrival_ns, " is outside [0, ", kMaxArrivalNs, "]"));
  }
  ManualClock* clock = parts_.virtual_clock.get();
  while (clock->NowNs() < arrival_ns) {
    LLM_ASSIGN_OR_RETURN(const bool worked, Step());
    if (worked) continue;
    if (!gate_.TryEnter()) {
      return absl::FailedPreconditionError("arrival_ns: a step of this engine is running");
    }
    const auto leave = absl::MakeCleanup([this] { gate_.Leave(); });
    // Only what its reader keeps waiting may be left: its deadlines still count.
    const int64_t now_ns = clock->NowNs();
    const int64_t deadline_ns = loop_.NextDeadlineNs();
    if (now_ns >= arrival_ns) break;  // another caller's steps
    const bool sooner = deadline_ns > now_ns && deadline_ns < arrival_ns;
    clock->AdvanceNs((sooner ? deadline_ns : arrival_ns) - now_ns);
  }
  return absl::OkStatus();
}

}  // namespace llm
