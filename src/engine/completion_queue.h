// A completion queue: where events wait until a thread of the host polls them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/engine/delivery.h"

namespace llm {

class CompletionQueue : public EventSink {
 public:
  // `manual`: belongs to a manually driven engine, so that waiting on it could never end.
  explicit CompletionQueue(bool manual = false) : manual_(manual) {}
  ~CompletionQueue() override;

  // Takes up to `capacity` events, waiting at most `timeout_ns` for the first (0: not at all, < 0:
  // for ever), and shows each to `receive`. What an event lends is valid until the next Poll.
  // FAILED_PRECONDITION: another thread is polling, the queue is closed, or a wait on a manual
  // queue.
  absl::StatusOr<size_t> Poll(size_t capacity, int64_t timeout_ns,
                              absl::FunctionRef<void(size_t index, const Event& event)> receive);

  // A level-triggered, close-on-exec eventfd, readable while events wait; the queue's.
  // RESOURCE_EXHAUSTED: none was left.
  absl::StatusOr<int> Fd();

  // Drops what waits and what comes. FAILED_PRECONDITION while a thread polls.
  absl::Status Close();

 private:
  // Lets others poll again when the poll is over, however it ends.
  class PollEnd {
   public:
    explicit PollEnd(CompletionQueue* queue) : queue_(queue) {}
    ~PollEnd() {
      std::lock_guard<std::mutex> lock(queue_->mutex_);
      queue_->polling_ = false;
    }
    PollEnd(const PollEnd&) = delete;
    PollEnd& operator=(const PollEnd&) = delete;

   private:
    CompletionQueue* const queue_;
  };

  void OnReady() override;
  absl::Status BeginPoll(int64_t timeout_ns);
  absl::Status TakeAll(size_t capacity, int64_t timeout_ns);
  void SetFd(bool readable);

  const bool manual_;
  // Made early: there is no memory for it when it is needed.
  const absl::Status no_memory_ =
      absl::ResourceExhaustedError("poll: no memory for the events; poll again");
  std::condition_variable ready_;
  bool polling_ = false;
  int fd_ = -1;
  bool fd_readable_ = false;
  std::vector<TakenEvent> lent_;  // the poller's alone
};

}  // namespace llm
