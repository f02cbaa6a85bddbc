// A score is a request that computes its text and samples nothing: it goes through the scheduler as
// all others do.
#include "src/engine/score.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/engine.h"

namespace llm {

absl::Status ScoreSink::TakeText(std::vector<int32_t>* ids) {
  const int64_t size = static_cast<int64_t>(ids->size());
  if (size < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("score: a text of ", size, " tokens; at least 2 are needed"));
  }
  if (first_ < 1 || first_ >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("first: ", first_, " is outside [1, ", size - 1, "]"));
  }
  last_id_ = ids->back();
  ids->pop_back();
  logprobs_.reserve(static_cast<size_t>(size - first_));
  return absl::OkStatus();
}

absl::Status ScoreSink::Add(const ScoreRow& row) {
  logprobs_.push_back(row.logprob);  // within the capacity that TakeText reserved
  if (handler_.call == nullptr) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  if (abandoned_) return absl::CancelledError("score: abandoned");
  try {
    if (handler_.call(handler_.host, handler_.user_data, row) == 0) return absl::OkStatus();
  } catch (...) {
    return absl::InternalError("score: the row callback threw an exception");
  }
  return absl::CancelledError("score: cancelled by the row callback");
}

void ScoreSink::Abandon() {
  std::lock_guard<std::mutex> lock(mutex_);
  abandoned_ = true;
}

absl::StatusOr<std::vector<float>> Engine::Score(const ScoreSpec& score) {
  const CallCount::Scope inside(&calls_);
  LLM_RETURN_IF_ERROR(CheckMayWait("score"));
  RequestSpec spec = RequestOf(score);
  spec.score = std::make_shared<ScoreSink>(score.first, score.handler);
  uint64_t id = 0;
  LLM_RETURN_IF_ERROR(SubmitAndWait(&spec, &id));
  return spec.score->TakeLogprobs();
}

absl::Status Engine::CheckMayWait(absl::string_view call) const {
  if (!InStep() && !(options_.manual && dispatcher_->InCallback())) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(call, ": called inside a step of this engine"));
}

absl::Status Engine::SubmitAndWait(RequestSpec* spec, uint64_t* id) {
  spec->max_new_tokens = 1;  // the place behind the text, which nothing is written to
  spec->use_prefix_cache = spec->pin != nullptr || spec->transfer != nullptr;
  spec->queue = std::make_shared<CompletionQueue>(options_.manual);
  LLM_RETURN_IF_ERROR(Submit(*spec, id));
  try {
    const absl::Status status = WaitForFinish(*spec);
    if (!status.ok()) GiveUp(*spec, *id);
    return status;
  } catch (...) {
    GiveUp(*spec, *id);
    throw;
  }
}

// Nothing of the caller's is touched from here on, and nothing stays held.
void Engine::GiveUp(const RequestSpec& spec, uint64_t id) {
  if (spec.score != nullptr) spec.score->Abandon();
  if (spec.pin != nullptr) loop_.pins()->Abandon(id, spec.pin.get());
  queue_.Cancel(id).IgnoreError();
}

// Manual drive: this thread runs the steps, of all requests.
absl::Status Engine::WaitForFinish(const RequestSpec& spec) {
  bool finished = false;
  absl::Status result;
  while (true) {
    absl::Status stepped;
    if (options_.manual) stepped = Step().status();
    const auto receive = [&](size_t, const Event& event) {
      if (event.type != EventType::kFinished) return;
      finished = true;
      result = absl::Status(event.status, event.message);
    };
    const absl::Status polled = spec.queue->Poll(1, options_.manual ? 0 : -1, receive).status();
    if (finished) return result;
    if (stepped.ok()) stepped = polled;
    if (stepped.ok()) continue;
    // The one who shuts down may not have come to end the requests yet.
    if (absl::IsFailedPrecondition(stepped) && queue_.closed()) {
      return absl::CancelledError("cancelled: the engine shuts down");
    }
    return stepped;
  }
}

}  // namespace llm
