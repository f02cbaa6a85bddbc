// The ready list links outboxes through themselves, so that making an event ready never allocates.
#include "src/engine/delivery.h"

#include <algorithm>
#include <utility>

namespace llm {

Event TakenEvent::View() const {
  Event event;
  event.type = prompt ? EventType::kPrompt : EventType::kTokens;
  event.choice = outbox->choice;
  event.id = outbox->id;
  event.user_data = outbox->user_data;
  event.text = delta.text;
  event.token_ids = delta.token_ids;
  event.logprobs = delta.logprobs;
  event.logprobs_per_token =
      prompt ? outbox->prompt_logprobs_per_token : outbox->logprobs_per_token;
  if (finished) {  // nothing writes to the outbox after its finish was taken
    event.type = outbox->whole != nullptr ? EventType::kChoiceFinished : EventType::kFinished;
    event.choice = outbox->finish.choice;
    event.reason = outbox->finish.reason;
    event.status = outbox->finish.status;
    event.message = outbox->message;
    event.stats = &outbox->finish.stats;
    event.stop_index = outbox->finish.stop_index;
  }
  return event;
}

EventSink::~EventSink() { CloseLocked(); }

void EventSink::PushTo(const std::shared_ptr<Outbox>& outbox, Delta* pending, Delta* delta) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_ || delta->empty()) {
    delta->Clear();
    return;
  }
  if (pending->empty()) {
    std::swap(*pending, *delta);
  } else {
    pending->Append(*delta);
  }
  delta->Clear();
  outbox->pending_bytes.store(outbox->CountPendingBytes());
  List(outbox);
}

void EventSink::Finish(const std::shared_ptr<Outbox>& outbox, const FinishRecord& finish,
                       absl::string_view message) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return;
  outbox->finish = finish;
  const size_t size = std::min(message.size(), outbox->message.capacity());
  outbox->message.assign(message.data(), size);
  outbox->has_finish = true;
  List(outbox);
}

void EventSink::List(const std::shared_ptr<Outbox>& outbox) {
  if (!outbox->listed) {
    outbox->listed = true;
    if (tail_ == nullptr) {
      head_ = outbox;
    } else {
      tail_->next = outbox;
    }
    tail_ = outbox.get();
    ++num_ready_;
  }
  OnReady();
}

void EventSink::TakeOne(TakenEvent* taken) {
  Outbox* outbox = head_.get();
  taken->outbox = head_;
  taken->delta.Clear();
  taken->prompt = !outbox->pending_prompt.empty();
  Delta* pending = taken->prompt ? &outbox->pending_prompt : &outbox->pending;
  taken->finished = pending->empty();
  if (!taken->finished) {
    std::swap(taken->delta, *pending);
    outbox->pending_bytes.store(outbox->CountPendingBytes());
    if (!outbox->pending.empty()) return;  // stays first: its tokens come next
    taken->wake = outbox->wake_when_taken.exchange(false);
    if (outbox->has_finish) return;  // likewise its FINISHED
  }
  outbox->listed = false;
  --num_ready_;
  head_ = std::move(outbox->next);
  if (head_ == nullptr) tail_ = nullptr;
}

void EventSink::CloseLocked() {
  closed_ = true;
  while (head_ != nullptr) {  // a loop, since a chain of destructors could be deep
    head_->listed = false;
    head_->pending_prompt.Clear();
    head_->pending.Clear();
    head_->pending_bytes.store(0);
    // A paused request runs on, for nobody. The waker's mutex is a leaf: taking it here is safe.
    if (head_->wake_when_taken.exchange(false)) head_->waker->Wake();
    head_ = std::move(head_->next);
  }
  tail_ = nullptr;
  num_ready_ = 0;
}

}  // namespace llm
