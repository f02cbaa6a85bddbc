// The step, and its first half: taking requests in and planning.
#include "src/engine/step_loop.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/bound.h"
#include "src/base/float_state.h"
#include "src/base/nvtx.h"

namespace llm {

StepLoop::StepLoop(const StepLoopOptions& options, RequestQueue* queue, Scheduler* scheduler,
                   Runner* runner, const Clock* clock, TraceRecorder* trace, Logger logger)
    : options_(options),
      queue_(queue),
      scheduler_(scheduler),
      runner_(runner),
      clock_(clock),
      trace_(trace),
      logger_(logger),
      out_of_memory_(absl::InternalError("the engine ran out of memory")),
      unknown_exception_(absl::InternalError("an unknown exception inside a step")),
      edits_(options.vocab_size),
      adjuster_(options.vocab_size),
      laps_(clock),
      log_(options.bytes) {
  PublishCounters();  // the blocks are there before the first step
}

bool StepLoop::RunStep() {
  const ScopedFloatState float_state;  // manual drive: the host's thread
  if (!healthy()) return false;
  try {
    return RunStepOrThrow();
  } catch (const std::bad_alloc&) {
    Fail(out_of_memory_);
  } catch (...) {
    Fail(unknown_exception_);
  }
  return true;
}

bool StepLoop::HookFailed() {
  if (options_.hook_fault == nullptr || !options_.hook_fault->occurred()) return false;
  Fail(options_.hook_fault->status());  // what such a host ran is not to be trusted
  return true;
}

bool StepLoop::RunStepOrThrow() {
  if (HookFailed()) return true;
  const int64_t start_ns = laps_.Begin();
  log_.Begin(start_ns);
  StepPlan plan;
  bool worked = false;
  try {
    worked = AdmitAndSchedule(&plan);
  } catch (const std::bad_alloc&) {
    // Nothing was planned: what has come in waits for the next step.
    HandleFailedStep(plan, out_of_memory_);
    Deliver(/*worked=*/true);
    return true;
  }
  if (!plan.chunks.empty()) {
    worked = true;
    const absl::Status status = Compute(plan);
    if (HookFailed()) return true;
    if (status.ok()) {
      Commit(&plan);
    } else {
      HandleFailedStep(plan, status);
    }
    counters_.step_ns_total += static_cast<uint64_t>(laps_.End(StepPart::kCommit) - start_ns);
  } else if (IsMoving()) {
    worked = true;
  } else if (held_until_ns_ == 0 && HasRunnable()) {
    Fail(absl::InternalError("the scheduler has requests but plans nothing"));
    return true;
  }
  Deliver(worked);
  return worked;
}

bool StepLoop::AdmitAndSchedule(StepPlan* plan) {
  const bool worked = Admit();
  held_until_ns_ = HoldUntilNs();
  laps_.End(StepPart::kAdmit);
  if (held_until_ns_ != 0) return worked;
  *plan = Schedule();
  laps_.End(StepPart::kSchedule);
  return worked;
}

// Throws std::bad_alloc with nothing lost: they stay in incoming_.
void StepLoop::TakeIncoming() {
  active_.reserve(active_.size() + incoming_.size());
  ended_.reserve(active_.size() + incoming_.size());
  for (std::unique_ptr<ActiveRequest>& request : incoming_) {
    log_.Add(RecordKind::kEnqueued, request->request.id, request->num_prompt_tokens(), 0,
             request->request.arrival_ns);
    active_.push_back(std::move(request));
  }
  incoming_.clear();
}

bool StepLoop::Admit() {
  NvtxRange range("admit");
  const size_t num_before = active_.size();
  TakeIncoming();  // whom a step without memory left over
  queue_->Drain(&incoming_);
  // After the drain: who submitted after asking for the flush finds the cache empty.
  const bool flushed = flush_requested_.exchange(false);
  if (flushed) scheduler_->FlushPrefixCache();
  if (flushed && options_.spill != nullptr) options_.spill->Clear();
  TakeIncoming();
  const bool arrived = active_.size() > num_before;
  bool ended = false;
  slice_left_ = options_.slice_bytes;
  const int64_t now_ns = clock_->NowNs();
  for (const std::unique_ptr<ActiveRequest>& request : active_) {
    CheckInterrupts(request.get(), now_ns);
    const bool reads =
        !request->paused || request->outbox->pending_bytes.load() <= options_.max_pending_bytes / 2;
    if (request->open() && !request->scheduled && reads) AdmitOne(request.get());
    if (request->open() && request->copies_out()) CopyOut(request.get());
    ended |= !request->open();
  }
  // After the cancels: a session that is closed with its last request gives back blocks first.
  const bool hinted = session_hints_.Apply(scheduler_);
  const bool unpinned = pins_.Apply(scheduler_);
  return arrived || ended || flushed || hinted || unpinned;
}

void StepLoop::AdmitOne(ActiveRequest* request) {
  if (request->transfer != nullptr && request->transfer->restore) return RestorePrefix(request);
  try {
    request->status = SequenceStatus::kWaiting;
    scheduler_->Add(request);
    request->scheduled = true;
    request->paused = false;
  } catch (const std::bad_alloc&) {
    End(request, FinishReason::kError, out_of_memory_);
  }
}

void StepLoop::CheckInterrupts(ActiveRequest* request, int64_t now_ns) {
  const Request& asked = request->request;
  const bool no_token = request->stats.first_token_ns == 0;
  const Outbox& whole = *WholeOf(request->outbox);
  if (whole.callback_threw.load()) {
    End(request, FinishReason::kError, statuses_.callback_threw);
  } else if (whole.cancel_requested.load()) {
    End(request, FinishReason::kCancelled, statuses_.cancelled);
  } else if (asked.completion_deadline_ns != 0 && now_ns >= asked.completion_deadline_ns) {
    End(request, FinishReason::kDeadline, statuses_.completion_late);
  } else if (no_token && asked.first_token_deadline_ns != 0 &&
             now_ns >= asked.first_token_deadline_ns) {
    End(request, FinishReason::kDeadline, statuses_.first_token_late);
  } else if (no_token && IsHopeless(request, now_ns)) {
    End(request, FinishReason::kDeadline, statuses_.hopeless);
    ++counters_.hopeless_requests_total;
  }
}

StepPlan StepLoop::Schedule() {
  NvtxRange range("schedule");
  // Half the budget after each failure: a step that needs less memory or time may pass.
  // Who comes while a step of decodes has begun already goes into the step after it.
  StepLimit limit = {.max_tokens = std::max(1, options_.max_step_tokens >> num_failures_),
                     .step_ns = options_.step_ns,
                     .cost = &cost_,
                     .decodes_only = runner_->is_ahead(),
                     .look_ahead = runner_->runs_ahead() && !IsMoving()};
  ReturnSpilled(limit);
  StepPlan plan = Plan(limit);
  if (std::exchange(limit.decodes_only, false) && plan.chunks.empty()) plan = Plan(limit);
  // A plan that only preempted is empty; with what that freed, the next one is not.
  if (plan.chunks.empty() && HasRunnable()) plan = Plan(limit);
  TellTroubles();
  last_step_tokens_ = plan.num_tokens;
  last_step_sequences_ = plan.chunks.size();
  if (!plan.chunks.empty()) CountPlan(plan);
  return plan;
}

// Of the second tier and the runner, neither of which fails a step.
void StepLoop::TellTroubles() const {
  try {
    if (options_.spill != nullptr) options_.spill->TellFailures();
    for (const std::string& notice : runner_->TakeNotices()) logger_.Warning(notice);
  } catch (...) {
    return;  // no log is worth a step
  }
}

StepPlan StepLoop::Plan(const StepLimit& limit) {
  const int64_t now_ns = clock_->NowNs();
  StepPlan plan = scheduler_->Plan(limit, now_ns);
  log_.AddPreempted(plan, now_ns);
  for (const StepPlan::Preempted& victim : plan.preempted) {
    counters_.histograms.Add(HistogramId::kVictimTokens,
                             static_cast<uint64_t>(victim.computed_tokens));
    counters_.histograms.Add(HistogramId::kRetainedTokens,
                             static_cast<uint64_t>(victim.retained_tokens));
  }
  return plan;
}

// Then a plan may be empty: whoever is left may wait for these blocks, or for their room.
bool StepLoop::IsMoving() const {
  return std::any_of(active_.begin(), active_.end(),
                     [](const auto& request) { return request->moves(); });
}

bool StepLoop::HasRunnable() const {
  return !IsMoving() && std::any_of(active_.begin(), active_.end(), [](const auto& request) {
    return request->open() && !request->paused;
  });
}

int64_t StepLoop::NextDeadlineNs() const {
  int64_t next_ns = 0;
  for (const auto& request : active_) {
    next_ns = TighterBound(next_ns, request->request.completion_deadline_ns);
    if (request->stats.first_token_ns != 0) continue;
    next_ns = TighterBound(next_ns, request->request.first_token_deadline_ns);
  }
  return next_ns;
}

void StepLoop::PublishCounters() {
  counters_.cost = cost_.coefficients();
  counters_.cost_error = cost_.error();
  if (options_.spill != nullptr) counters_.spill = options_.spill->counters();
  counters_.graphs = runner_->graphs();
  counters_.ahead = runner_->ahead();
  counters_.paused_current = 0;
  counters_.event_bytes_current = 0;
  for (const auto& request : active_) {
    counters_.paused_current += request->paused ? 1 : 0;
    counters_.event_bytes_current += request->outbox->pending_bytes.load();
    if (request->status == SequenceStatus::kWaiting) {
      log_.AddWaiting(request->num_generated_tokens() > 0, request->num_tokens());
    }
  }
  std::lock_guard<std::mutex> lock(published_mutex_);
  published_.step = counters_;
  if (healthy()) published_.scheduler = scheduler_->counters();
  log_.End(published_.scheduler, laps_.PartNs(StepPart::kForward), laps_.last_ns());
}

StepCostModel::Coefficients StepLoop::published_cost() const {
  std::lock_guard<std::mutex> lock(published_mutex_);
  return published_.step.cost;
}

StepLoop::Counters StepLoop::counters() const {
  std::lock_guard<std::mutex> lock(published_mutex_);
  return published_;
}

}  // namespace llm
