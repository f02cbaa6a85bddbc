// Requests with several choices, and what each must equal.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "tests/engine/engine_harness.h"

namespace llm {

inline RequestSpec Choices(const EngineHarness& harness, absl::string_view text,
                           int32_t max_new_tokens, int32_t choices) {
  RequestSpec spec = harness.Spec(text, max_new_tokens);
  spec.choices = choices;
  spec.sampling.temperature = 1.0f;
  spec.has_seed = true;
  spec.sampling.seed = 42;
  return spec;
}

// Each choice against a request of its own with the seed that its stats tell.
inline void ExpectEachEqualsItsAloneRun(const HarnessOptions& options, RequestSpec spec,
                                        uint64_t id, EngineHarness* harness) {
  const int32_t choices = std::exchange(spec.choices, 1);
  for (uint32_t i = 0; i < static_cast<uint32_t>(choices); ++i) {
    const Received& choice = harness->Of(id, i);
    ASSERT_EQ(choice.num_finished, 1) << "choice " << i;
    spec.sampling.seed = choice.stats.seed;
    const Received alone = RunAlone(options, spec);
    EXPECT_EQ(choice.ids, alone.ids) << "choice " << i;
    EXPECT_EQ(choice.text, alone.text);
    EXPECT_EQ(choice.reason, alone.reason);
  }
}

}  // namespace llm
