// How many requests met what they had asked for: first token, gaps, completion, all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/engine/events.h"
#include "src/sequence/request.h"

namespace llm {

enum class Target : size_t { kFirstToken, kTokenGap, kCompletion };
inline constexpr size_t kNumTargets = 3;
inline constexpr const char* kTargetNames[kNumTargets] = {"first_token", "token_gap", "completion"};

struct TargetCounters {
  // Of requests that ended, not by a cancel.
  std::array<uint64_t, kNumTargets> stated{};
  std::array<uint64_t, kNumTargets> met{};
  // Ended by themselves with every target that they had stated met; and the tokens of those.
  uint64_t good_requests = 0;
  uint64_t good_tokens = 0;

  // Returns whether the request was good.
  bool Count(const Request& asked, const FinishRecord& finish);
};

}  // namespace llm
