// What the engine tells about a request: events, their finish record, and the tokens and text not
// yet taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/sampling/sampler.h"
#include "src/sequence/stop_criteria.h"

namespace llm {

enum class EventType : uint32_t { kTokens = 1, kChoiceFinished = 2, kFinished = 3, kPrompt = 4 };

// Laid out as llm_request_stats (capi/abi_layout.cc asserts it), so that an event can lend it as it
// is.
struct RequestStats {
  uint32_t struct_size = 0;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;
  int32_t generated_tokens = 0;
  int32_t preemptions = 0;
  int32_t reserved = 0;
  int64_t recomputed_tokens = 0;
  int64_t queue_ns = 0;
  int64_t ttft_ns = -1;  // -1: no token came
  int64_t total_ns = 0;
  uint64_t seed = 0;
  int64_t prefill_ns = 0;
  int64_t stall_ns = 0;
  int64_t decode_ns = 0;
  int64_t deliver_ns = 0;
  int64_t longest_gap_ns = 0;
};

// Everything is borrowed: from the queue until its next poll, or from the dispatcher until the
// callback returns.
struct Event {
  EventType type = EventType::kTokens;
  uint32_t choice = 0;
  uint64_t id = 0;
  void* user_data = nullptr;
  absl::string_view text;
  absl::Span<const int32_t> token_ids;      // [num_tokens]
  absl::Span<const TokenLogprob> logprobs;  // [num_tokens, logprobs_per_token]
  int32_t logprobs_per_token = 0;
  FinishReason reason = FinishReason::kNone;
  absl::StatusCode status = absl::StatusCode::kOk;
  absl::string_view message;
  const RequestStats* stats = nullptr;  // kChoiceFinished and kFinished only
  int32_t stop_index = -1;
};

// Where a callback request's events go. `call` may throw: the dispatcher catches.
struct EventHandler {
  void (*call)(void* host, const Event& event) = nullptr;
  void* host = nullptr;
};

struct FinishRecord {
  uint32_t choice = 0;
  FinishReason reason = FinishReason::kNone;
  absl::StatusCode status = absl::StatusCode::kOk;
  int32_t stop_index = -1;
  RequestStats stats;
};

// Tokens, text and log-probabilities that belong together.
struct Delta {
  std::vector<int32_t> token_ids;
  std::string text;
  std::vector<TokenLogprob> logprobs;

  bool empty() const { return token_ids.empty() && text.empty(); }
  size_t size_bytes() const {
    return token_ids.size() * sizeof(int32_t) + text.size() +
           logprobs.size() * sizeof(TokenLogprob);
  }
  void Clear();
  // Appends `other`, or changes nothing when that throws std::bad_alloc.
  void Append(const Delta& other);
};

}  // namespace llm
