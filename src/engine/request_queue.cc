// Ids are given under the same lock that orders the requests, so that ids and arrival agree.
#include "src/engine/request_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {

RequestQueue::RequestQueue(const QueueBounds& bounds, std::shared_ptr<Waker> waker)
    : usage_(std::make_shared<QueueUsage>(bounds)), waker_(std::move(waker)) {}

absl::Status RequestQueue::CheckOpen() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (closed_) return absl::FailedPreconditionError("the engine is shut down");
  return absl::OkStatus();
}

absl::Status RequestQueue::Push(absl::Span<std::unique_ptr<ActiveRequest>> choices, uint64_t* id) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return failure_;
    if (closed_) return absl::FailedPreconditionError("the engine is shut down");
    const size_t size = new_requests_.size() + choices.size();
    if (size > new_requests_.capacity()) {
      new_requests_.reserve(std::max({size_t{16}, size, 2 * new_requests_.size()}));
    }
    const std::shared_ptr<Outbox>& whole = WholeOf(choices.front()->outbox);
    open_.emplace(next_id_, whole);
    whole->id = next_id_;
    *id = next_id_++;
    for (std::unique_ptr<ActiveRequest>& choice : choices) {
      choice->request.id = *id;
      choice->outbox->id = *id;
      new_requests_.push_back(std::move(choice));
    }
    ++counters_.submitted_total;
  }
  waker_->Wake();
  return absl::OkStatus();
}

absl::Status RequestQueue::Cancel(uint64_t id) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return failure_;
    const auto found = open_.find(id);
    if (found == open_.end()) {
      return absl::NotFoundError(absl::StrCat("cancel: request ", id, " is not open"));
    }
    found->second->cancel_requested.store(true);
  }
  waker_->Wake();
  return absl::OkStatus();
}

void RequestQueue::CountRejected(absl::StatusCode code) {
  std::lock_guard<std::mutex> lock(mutex_);
  RejectCounters& rejected = counters_.rejected;
  if (code == absl::StatusCode::kResourceExhausted) {
    ++rejected.full;
  } else if (code == absl::StatusCode::kInvalidArgument) {
    ++rejected.invalid;
  } else {
    ++rejected.other;
    if (code == absl::StatusCode::kDeadlineExceeded) ++rejected.late;
  }
}

void RequestQueue::Close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  waker_->Wake();
}

void RequestQueue::Fail(const absl::Status& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) failure_ = why;
}

bool RequestQueue::closed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

void RequestQueue::Drain(std::vector<std::unique_ptr<ActiveRequest>>* requests) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::swap(new_requests_, *requests);
}

void RequestQueue::Forget(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  open_.erase(id);
}

RequestQueue::Backlog RequestQueue::backlog() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Backlog backlog;
  for (const std::unique_ptr<ActiveRequest>& request : new_requests_) {
    ++backlog.requests;
    backlog.prompt_tokens += request->num_prompt_tokens();
  }
  return backlog;
}

RequestQueue::Counters RequestQueue::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

}  // namespace llm
