// A step's time is close to a line through zero in its tokens, once they fill the kernels' tiles.
#include "src/engine/step_budget.h"

namespace llm {
namespace {

constexpr int64_t kTargetNs = 100'000'000;  // a cancel is seen once a step

}  // namespace

void StepBudget::Note(int32_t tokens, int64_t step_ns) {
  if (chosen() || tokens < kLeast) return;
  step_ns = std::max<int64_t>(1, step_ns);
  // Warm or not, it will not get so far below the target that two such chunks fit.
  --steps_left_;
  if (step_ns > 4 * kTargetNs) steps_left_ = 0;
  if (!chosen()) return;
  const int64_t fits = kTargetNs / step_ns >= most_ ? most_ : kTargetNs * tokens / step_ns;
  tokens_ = static_cast<int32_t>(std::clamp<int64_t>(fits / kLeast * kLeast, kLeast, most_));
}

}  // namespace llm
