// Events are moved out under the lock and shown outside it: the producer never touches what was
// lent.
#include "src/engine/completion_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/wait_deadline.h"

namespace llm {

CompletionQueue::~CompletionQueue() {
  if (fd_ >= 0) close(fd_);
}

absl::Status CompletionQueue::BeginPoll(int64_t timeout_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (manual_ && timeout_ns != 0) {
    return absl::FailedPreconditionError(
        "poll: timeout_ns must be 0 on the queue of a manually driven engine");
  }
  if (closed()) return absl::FailedPreconditionError("poll: the queue is closed");
  if (polling_) return absl::FailedPreconditionError("poll: another thread polls this queue");
  polling_ = true;
  return absl::OkStatus();
}

absl::StatusOr<size_t> CompletionQueue::Poll(
    size_t capacity, int64_t timeout_ns,
    absl::FunctionRef<void(size_t index, const Event& event)> receive) {
  LLM_RETURN_IF_ERROR(BeginPoll(timeout_ns));
  const PollEnd end(this);  // also when something below throws
  const absl::Status status = TakeAll(capacity, timeout_ns);
  for (size_t i = 0; i < lent_.size(); ++i) {
    if (lent_[i].wake) lent_[i].outbox->waker->Wake();
    receive(i, lent_[i].View());
  }
  if (!status.ok()) return status;
  return lent_.size();
}

absl::Status CompletionQueue::TakeAll(size_t capacity, int64_t timeout_ns) {
  lent_.clear();
  std::unique_lock<std::mutex> lock(mutex_);
  if (!HasReady() && timeout_ns != 0) {
    WaitDeadline(timeout_ns).Wait(&ready_, &lock, [this] { return HasReady(); });
  }
  // An outbox holds at most three events: prompt, tokens, and its FINISHED.
  const size_t wanted = std::min(capacity, 3 * num_ready());
  try {
    lent_.reserve(wanted);
  } catch (const std::bad_alloc&) {
    return no_memory_;
  }
  while (HasReady() && lent_.size() < wanted) TakeOne(&lent_.emplace_back());
  if (!HasReady()) SetFd(false);
  return absl::OkStatus();
}

absl::StatusOr<int> CompletionQueue::Fd() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (fd_ < 0) {
    fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd_ < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("eventfd: ", std::strerror(errno)));
    }
    if (HasReady()) SetFd(true);
  }
  return fd_;
}

absl::Status CompletionQueue::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (polling_) return absl::FailedPreconditionError("queue close: a thread polls this queue");
  CloseLocked();
  SetFd(false);
  return absl::OkStatus();
}

void CompletionQueue::OnReady() {
  SetFd(true);
  ready_.notify_one();
}

void CompletionQueue::SetFd(bool readable) {
  if (fd_ < 0 || fd_readable_ == readable) return;
  uint64_t value = 1;
  const ssize_t size =
      readable ? write(fd_, &value, sizeof(value)) : read(fd_, &value, sizeof(value));
  // The descriptor is non-blocking and counts to one: neither call can fail unless the host meddles
  // with it.
  (void)size;
  fd_readable_ = readable;
}

}  // namespace llm
