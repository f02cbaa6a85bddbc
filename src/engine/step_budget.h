// How many tokens a step may hold: given, or chosen from what the first steps took.
#pragma once

#include <algorithm>
#include <cstdint>

namespace llm {

// Until it is chosen, the budget is the smallest one: opening an engine costs no trial, and no step
// is longer than it must be. Answers do not depend on it.
class StepBudget {
 public:
  static constexpr int32_t kLeast = 64;  // enough for the kernels' full tiles

  StepBudget() = default;
  // Fixed.
  explicit StepBudget(int32_t tokens) : tokens_(tokens), most_(tokens) {}
  // To be chosen: a multiple of kLeast, up to `most`.
  static StepBudget Measured(int32_t most) {
    StepBudget budget(std::min(kLeast, most));
    budget.most_ = most;
    budget.steps_left_ = most > kLeast ? 2 : 0;
    return budget;
  }

  int32_t tokens() const { return tokens_; }
  bool chosen() const { return steps_left_ == 0; }
  // A step of `tokens` took `step_ns`. Of those with kLeast tokens the first warms caches and
  // threads, the second counts.
  void Note(int32_t tokens, int64_t step_ns);

 private:
  int32_t tokens_ = kLeast;
  int32_t most_ = kLeast;
  int steps_left_ = 0;
};

}  // namespace llm
