// The device of LLM_DEVICE_SIM: computes nothing, and moves a virtual clock by what a step costs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/clock.h"
#include "src/runner/runner.h"
#include "src/scheduler/step_cost_model.h"

namespace llm {

// Gives tokens without logits: each is a function of the request's seed and the place. An answer
// ends with an end token behind min_new_tokens, where there are both, else by max_new_tokens.
class SimRunner final : public Runner {
 public:
  SimRunner(const StepCostModel::Coefficients& cost, int32_t vocab_size,
            std::shared_ptr<ManualClock> clock)
      : cost_(cost), vocab_size_(vocab_size), clock_(std::move(clock)) {}

  absl::StatusOr<StepLogits> Execute(const StepPlan& plan) override;

 private:
  int32_t TokenFor(const Sequence& sequence) const;

  const StepCostModel::Coefficients cost_;
  const int32_t vocab_size_;
  const std::shared_ptr<ManualClock> clock_;
  std::vector<int32_t> tokens_;  // of the last step, a row each
};

}  // namespace llm
