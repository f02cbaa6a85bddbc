// A step's time by part: each reading of the clock ends one lap and begins the next, so that the
// laps fill the step.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/base/clock.h"

namespace llm {

enum class StepPart : size_t { kAdmit, kSchedule, kForward, kSample, kCommit, kDeliver };
inline constexpr size_t kNumStepParts = 6;
inline constexpr const char* kStepPartNames[kNumStepParts] = {"admit",  "schedule", "forward",
                                                              "sample", "commit",   "deliver"};

struct StepLap {
  StepPart part = StepPart::kAdmit;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

class StepLaps {
 public:
  // A part may end twice: delivery does, and the commit of a failed step.
  static constexpr size_t kMaxLaps = 10;

  explicit StepLaps(const Clock* clock) : clock_(clock) {}

  // Returns now.
  int64_t Begin() {
    mark_ns_ = begin_ns_ = clock_->NowNs();
    num_laps_ = 0;
    num_added_ = 0;
    return mark_ns_;
  }
  // What passed since the last call belongs to `part`. Returns now.
  int64_t End(StepPart part) {
    const int64_t now_ns = clock_->NowNs();
    if (num_laps_ < kMaxLaps) laps_[num_laps_++] = {part, mark_ns_, now_ns};
    mark_ns_ = now_ns;
    return now_ns;
  }
  // Adds the laps since the last call of it to `totals`.
  void AddTo(std::array<uint64_t, kNumStepParts>* totals) {
    for (; num_added_ < num_laps_; ++num_added_) {
      const StepLap& lap = laps_[num_added_];
      const int64_t ns = std::max<int64_t>(0, lap.end_ns - lap.begin_ns);
      (*totals)[static_cast<size_t>(lap.part)] += static_cast<uint64_t>(ns);
    }
  }
  int64_t PartNs(StepPart part) const {
    int64_t ns = 0;
    for (const StepLap& lap : laps()) ns += lap.part == part ? lap.end_ns - lap.begin_ns : 0;
    return ns;
  }
  int64_t last_ns() const { return mark_ns_; }    // the last reading
  int64_t begin_ns() const { return begin_ns_; }  // of this step, like the laps
  absl::Span<const StepLap> laps() const { return {laps_.data(), num_laps_}; }

 private:
  const Clock* const clock_;
  int64_t begin_ns_ = 0;
  int64_t mark_ns_ = 0;
  std::array<StepLap, kMaxLaps> laps_{};
  size_t num_laps_ = 0;
  size_t num_added_ = 0;
};

}  // namespace llm
