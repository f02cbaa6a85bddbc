// Measures a prefill and chooses the step budget from it.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/base/clock.h"
#include "src/cache/kv_groups.h"
#include "src/runner/runner.h"
#include "src/runner/runner_options.h"

namespace llm {

// The most tokens, a multiple of 64 in [64, options.max_step_tokens], whose step is predicted to
// take at most 100 ms. Runs dummy prefills through the runner, whose cache holds nothing of value
// yet.
absl::StatusOr<int32_t> CalibrateStepTokens(const RunnerOptions& options, const Clock& clock,
                                            Runner* runner);

}  // namespace llm
