// The step budget from a measured prefill, on a manual clock.
#include "src/engine/calibrate.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

constexpr int64_t kMs = 1'000'000;

class TimedRunner : public Runner {
 public:
  TimedRunner(ManualClock* clock, int64_t first_ns, int64_t later_ns)
      : clock_(clock), first_ns_(first_ns), later_ns_(later_ns) {}
  absl::StatusOr<StepLogits> Execute(const StepPlan& plan) override {
    EXPECT_LE(plan.num_tokens, 64);
    clock_->AdvanceNs(steps_++ == 0 ? first_ns_ : later_ns_);
    return StepLogits();
  }
  int steps() const { return steps_; }

 private:
  ManualClock* clock_;
  int64_t first_ns_;
  int64_t later_ns_;
  int steps_ = 0;
};

int32_t Calibrate(int64_t first_ns, int64_t later_ns) {
  ManualClock clock;
  TimedRunner runner(&clock, first_ns, later_ns);
  RunnerOptions options;
  options.max_step_tokens = 512;
  options.max_context = 1024;
  options.num_blocks = {64};
  const absl::StatusOr<int32_t> tokens = CalibrateStepTokens(options, clock, &runner);
  EXPECT_TRUE(tokens.ok());
  return tokens.value_or(0);
}

TEST(CalibrateTest, ChoosesTheLargestStepOfAtMostATenthOfASecond) {
  EXPECT_EQ(Calibrate(90 * kMs, 30 * kMs), 192);
  EXPECT_EQ(Calibrate(25 * kMs, 25 * kMs), 256);
}

TEST(CalibrateTest, StaysBetween64And512) {
  EXPECT_EQ(Calibrate(300 * kMs, 200 * kMs), 64);
  EXPECT_EQ(Calibrate(900 * kMs, 1), 64);
  EXPECT_EQ(Calibrate(1, 1), 512);
  EXPECT_EQ(Calibrate(0, 0), 512);
}

}  // namespace
}  // namespace llm
