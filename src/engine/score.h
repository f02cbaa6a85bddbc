// Scoring: the log-probabilities of tokens that are already known.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/engine/request_spec.h"

namespace llm {

// As llm_score_row. The logits are those of the step that is running.
struct ScoreRow {
  int64_t position = 0;  // of `id` in the text
  int32_t id = 0;
  float logprob = 0.0f;
  absl::Span<const float> logits;  // [vocab_size], from which `id` was predicted
};

// Where a score's rows go. Not 0: no more are wanted. `call` may throw: the engine catches.
struct ScoreHandler {
  int32_t (*call)(void* host, void* user_data, const ScoreRow& row) = nullptr;
  void* host = nullptr;
  void* user_data = nullptr;
};

struct ScoreSpec : TextSpec {
  int64_t first = 1;  // position of the first token that is scored
  ScoreHandler handler;
};

// What a scored request collects: written by the engine thread, read by the caller once FINISHED
// has come.
class ScoreSink {
 public:
  ScoreSink(int64_t first, const ScoreHandler& handler) : first_(first), handler_(handler) {}

  // Takes the last token off the text, since nothing is predicted from it, and makes room for all
  // results. INVALID_ARGUMENT naming `first`, or the text when it is too short.
  absl::Status TakeText(std::vector<int32_t>* ids);
  // The token after `computed`, of which the last one was at `position`.
  int32_t NextId(absl::Span<const int32_t> computed, int32_t position) const {
    const size_t next = static_cast<size_t>(position) + 1;
    return next < computed.size() ? computed[next] : last_id_;
  }
  int32_t begin() const { return static_cast<int32_t>(first_ - 1); }  // first row of logits

  // Allocates nothing. CANCELLED when the handler wants no more, INTERNAL when it throws.
  absl::Status Add(const ScoreRow& row);
  // The caller gives up waiting: the handler is not called from here on.
  void Abandon();

  std::vector<float> TakeLogprobs() { return std::move(logprobs_); }

 private:
  const int64_t first_;
  const ScoreHandler handler_;
  int32_t last_id_ = 0;
  std::vector<float> logprobs_;
  std::mutex mutex_;  // held while the handler runs, so that Abandon waits for it
  bool abandoned_ = false;
};

}  // namespace llm
