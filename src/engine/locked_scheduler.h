// A scheduler that callers may ask for a forecast while the engine's thread uses it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "src/scheduler/scheduler.h"

namespace llm {

// One mutex around each call. None lasts longer than planning a step, and the model computes
// outside of them.
class LockedScheduler final : public Scheduler {
 public:
  explicit LockedScheduler(std::unique_ptr<Scheduler> scheduler) : locked_(std::move(scheduler)) {}

  absl::Status CheckFits(int64_t num_prompt_tokens, int64_t max_new_tokens) const override {
    return locked_->CheckFits(num_prompt_tokens, max_new_tokens);  // reads what never changes
  }
  void Add(Sequence* sequence) override { Lock()->Add(sequence); }
  void Remove(Sequence* sequence) override { Lock()->Remove(sequence); }
  void NoteEnd(const Sequence& sequence) override { Lock()->NoteEnd(sequence); }
  FirstTokenForecast Forecast(const ForecastQuery& query) const override {
    return Lock()->Forecast(query);
  }
  StepPlan Plan(const StepLimit& limit, int64_t now_ns) override {
    return Lock()->Plan(limit, now_ns);
  }
  void Commit(const StepPlan& plan) override { Lock()->Commit(plan); }
  void Rollback(const StepPlan& plan) override { Lock()->Rollback(plan); }
  void FlushPrefixCache() override { Lock()->FlushPrefixCache(); }
  void HintSession(uint64_t session_id, SessionHint hint) override {
    Lock()->HintSession(session_id, hint);
  }
  absl::StatusOr<int32_t> PinnableTokens(int64_t num_tokens) const override {
    return locked_->PinnableTokens(num_tokens);  // likewise
  }
  absl::Status PinPrefix(const Sequence& sequence, uint64_t pin_id) override {
    return Lock()->PinPrefix(sequence, pin_id);
  }
  void UnpinPrefix(uint64_t pin_id) override { Lock()->UnpinPrefix(pin_id); }
  absl::StatusOr<bool> Adopt(Adoption* adoption, FillBlock fill, int32_t most_blocks) override {
    return Lock()->Adopt(adoption, fill, most_blocks);
  }
  void DropAdoption(Adoption* adoption) override { Lock()->DropAdoption(adoption); }
  void SetEvictionListener(EvictionListener* listener) override {
    Lock()->SetEvictionListener(listener);
  }
  PrefixPlace PlaceOf(const Sequence& sequence) const override { return Lock()->PlaceOf(sequence); }
  std::vector<Sequence*> NextToStart(const StepLimit& limit, size_t most) override {
    return Lock()->NextToStart(limit, most);
  }
  SchedulerCounters counters() const override { return Lock()->counters(); }
  std::vector<const Sequence*> Running() const override { return Lock()->Running(); }
  std::vector<const Sequence*> Waiting() const override { return Lock()->Waiting(); }
  absl::Status CheckInvariants() const override { return Lock()->CheckInvariants(); }

 private:
  // Holds the mutex for one expression.
  class Held {
   public:
    Held(std::mutex* mutex, Scheduler* scheduler) : lock_(*mutex), scheduler_(scheduler) {}
    Scheduler* operator->() const { return scheduler_; }

   private:
    std::lock_guard<std::mutex> lock_;
    Scheduler* const scheduler_;
  };
  Held Lock() const { return Held(&mutex_, locked_.get()); }

  const std::unique_ptr<Scheduler> locked_;
  mutable std::mutex mutex_;
};

}  // namespace llm
