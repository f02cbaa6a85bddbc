// A step's time by part: each reading of the clock ends one part and begins the next, so that the
// parts sum to the whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/clock.h"

namespace llm {

enum class StepPart : size_t { kAdmit, kSchedule, kForward, kSample, kCommit, kDeliver };
inline constexpr size_t kNumStepParts = 6;
inline constexpr const char* kStepPartNames[kNumStepParts] = {"admit",  "schedule", "forward",
                                                              "sample", "commit",   "deliver"};

class StepLaps {
 public:
  explicit StepLaps(const Clock* clock) : clock_(clock) {}

  // Returns now.
  int64_t Begin() {
    mark_ns_ = clock_->NowNs();
    ns_.fill(0);
    return mark_ns_;
  }
  // What passed since the last call belongs to `part`. Returns now.
  int64_t End(StepPart part) {
    const int64_t now_ns = clock_->NowNs();
    ns_[static_cast<size_t>(part)] += now_ns - mark_ns_;
    mark_ns_ = now_ns;
    return now_ns;
  }
  // Moves what has gathered to `totals`.
  void AddTo(std::array<uint64_t, kNumStepParts>* totals) {
    for (size_t i = 0; i < kNumStepParts; ++i) {
      (*totals)[i] += ns_[i] < 0 ? 0 : static_cast<uint64_t>(ns_[i]);
    }
    ns_.fill(0);
  }

 private:
  const Clock* const clock_;
  int64_t mark_ns_ = 0;
  std::array<int64_t, kNumStepParts> ns_{};
};

}  // namespace llm
