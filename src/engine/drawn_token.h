// A token that the device has drawn, as the host's sampler would give it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "src/runner/runner.h"
#include "src/sampling/sampler.h"

namespace llm {

// Draw `index` of `logits`, for a request that wants num_logprobs. INTERNAL: why nothing was drawn.
absl::StatusOr<SampledToken> DrawnToken(const StepLogits& logits, size_t index,
                                        int32_t num_logprobs);

}  // namespace llm
