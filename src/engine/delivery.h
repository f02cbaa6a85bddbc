// Hands events from the engine thread to their readers: one outbox per request, one sink per
// reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "src/engine/events.h"
#include "src/engine/waker.h"

namespace llm {

// One request's undelivered events, or one choice's. Made at submit with all that FINISHED needs,
// so that FINISHED can always be delivered.
struct Outbox {
  // Fixed before the engine sees it.
  uint64_t id = 0;
  void* user_data = nullptr;
  int32_t logprobs_per_token = 0;
  int32_t prompt_logprobs_per_token = 0;
  EventHandler handler;
  std::shared_ptr<Waker> waker;  // of the engine
  uint32_t choice = 0;
  std::shared_ptr<Outbox> whole;  // of a choice: its request's, for FINISHED alone

  // Guarded by the sink's mutex.
  Delta pending_prompt;  // taken before `pending`, as an event of its own
  Delta pending;
  bool has_finish = false;
  FinishRecord finish;
  std::string message;           // within the capacity that submit reserved
  bool listed = false;           // in the sink's ready list
  std::shared_ptr<Outbox> next;  // there

  // Any thread.
  std::atomic<size_t> pending_bytes{0};
  std::atomic<bool> wake_when_taken{false};  // the engine paused the request
  // These two concern the whole request.
  std::atomic<bool> cancel_requested{false};
  std::atomic<bool> callback_threw{false};

  // REQUIRES: the sink's mutex.
  size_t CountPendingBytes() const { return pending_prompt.size_bytes() + pending.size_bytes(); }
};

// Where what concerns the whole request stands.
inline const std::shared_ptr<Outbox>& WholeOf(const std::shared_ptr<Outbox>& outbox) {
  return outbox->whole != nullptr ? outbox->whole : outbox;
}

// One event taken out of its outbox; owns what the event lends.
struct TakenEvent {
  std::shared_ptr<Outbox> outbox;
  Delta delta;
  bool prompt = false;
  bool finished = false;
  bool wake = false;  // call outbox->waker->Wake() once no lock is held

  Event View() const;
};

// A first-in first-out list of outboxes with something to take, each of which leaves it empty: an
// outbox that is finished after others is taken after all that they hold. Producers never wait for
// readers.
class EventSink {
 public:
  virtual ~EventSink();
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  // Adds `delta` to what is pending and clears it. Throws std::bad_alloc with nothing changed. A
  // closed sink drops it.
  void Push(const std::shared_ptr<Outbox>& outbox, Delta* delta) {
    PushTo(outbox, &outbox->pending, delta);
  }
  // The same for a PROMPT event. REQUIRES: no tokens were pushed before.
  void PushPrompt(const std::shared_ptr<Outbox>& outbox, Delta* delta) {
    PushTo(outbox, &outbox->pending_prompt, delta);
  }
  // Adds the last event; allocates nothing and cannot fail.
  void Finish(const std::shared_ptr<Outbox>& outbox, const FinishRecord& finish,
              absl::string_view message);

 protected:
  EventSink() = default;
  // Called with mutex_ held after something became ready.
  virtual void OnReady() = 0;

  // All REQUIRE mutex_.
  bool HasReady() const { return head_ != nullptr; }
  size_t num_ready() const { return num_ready_; }
  // REQUIRES: HasReady(). Takes one event of the first outbox, which leaves the list when it has no
  // other.
  void TakeOne(TakenEvent* taken);
  // Later events are dropped, and those that wait.
  void CloseLocked();
  bool closed() const { return closed_; }

  std::mutex mutex_;

 private:
  void PushTo(const std::shared_ptr<Outbox>& outbox, Delta* pending, Delta* delta);
  void List(const std::shared_ptr<Outbox>& outbox);

  std::shared_ptr<Outbox> head_;
  Outbox* tail_ = nullptr;
  size_t num_ready_ = 0;
  bool closed_ = false;
};

}  // namespace llm
