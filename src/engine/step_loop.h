// What the engine thread owns, and the step: admit, schedule, batch, forward, sample, commit,
// deliver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/base/clock.h"
#include "src/base/hook_fault.h"
#include "src/base/log.h"
#include "src/base/trace.h"
#include "src/engine/active_request.h"
#include "src/engine/metrics.h"
#include "src/engine/prefix_pins.h"
#include "src/engine/request_queue.h"
#include "src/engine/session_hints.h"
#include "src/engine/spill_tier.h"
#include "src/engine/step_log.h"
#include "src/runner/runner.h"
#include "src/sampling/row_adjuster.h"
#include "src/sampling/sampler.h"
#include "src/scheduler/scheduler.h"

namespace llm {

struct StepLoopOptions {
  int32_t max_step_tokens = 64;
  int64_t step_ns = 0;  // as StepLimit::step_ns
  // How long after its arrival at an idle engine a request may be held, so that others share its
  // first step; 0: not at all.
  int64_t hold_ns = 0;
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  size_t max_pending_bytes = size_t{1} << 20;
  ByteModel bytes;
  bool refuse_late = true;     // as of EngineOptions
  SpillTier* spill = nullptr;  // null: evicted blocks are gone
  // What is copied between two steps of prefixes that are saved or loaded, and as much again of
  // those that the second tier returns: about a millisecond each.
  uint64_t slice_bytes = uint64_t{4} << 20;
  uint64_t slice_block_bytes = 0;         // of one block in all groups
  const HookFault* hook_fault = nullptr;  // of the host's hooks; may be null
  const Clock* device_clock = nullptr;    // that steps are measured on; null: the steady clock
};

// Used by one thread at a time, but for counters(), healthy() and log().
class StepLoop {
 public:
  StepLoop(const StepLoopOptions& options, RequestQueue* queue, Scheduler* scheduler,
           Runner* runner, const Clock* clock, TraceRecorder* trace, Logger logger);

  // Runs one step; false when there was nothing to do. Never throws: what is thrown inside fails
  // the step or the engine.
  bool RunStep();
  // Ends every open request (CANCELLED) and delivers their FINISHED. REQUIRES: the queue is closed.
  void CancelAll();
  // The next step drops the cached blocks that nothing uses, before it plans. From any thread.
  void RequestFlush() { flush_requested_.store(true); }
  // Reach the scheduler before the next step plans. From any thread.
  PrefixPins* pins() { return &pins_; }
  SessionHints* session_hints() { return &session_hints_; }

  // The earliest deadline of an open request on the engine's clock; 0: none.
  int64_t NextDeadlineNs() const;
  // Until when the requests at hand are held for others; 0: they are not.
  int64_t held_until_ns() const { return healthy() ? held_until_ns_ : 0; }
  bool healthy() const { return healthy_.load(); }

  struct Counters {
    StepCounters step;
    SchedulerCounters scheduler;
  };
  // As of the end of the last step.
  Counters counters() const;
  int64_t last_step_ns() const { return last_step_ns_.load(std::memory_order_relaxed); }
  StepCostModel::Coefficients published_cost() const;
  StepLog& log() { return log_; }
  const StepLog& log() const { return log_; }

  // For tests, between steps.
  const std::vector<std::unique_ptr<ActiveRequest>>& active() const { return active_; }
  int32_t last_step_tokens() const { return last_step_tokens_; }

 private:
  struct SampledRow {
    size_t chunk = 0;
    absl::StatusOr<SampledToken> token;
  };

  // step_loop.cc
  // True: the engine has turned unhealthy for it.
  bool HookFailed();
  bool RunStepOrThrow();
  bool AdmitAndSchedule(StepPlan* plan);
  bool Admit();
  void TakeIncoming();
  void AdmitOne(ActiveRequest* request);
  void CheckInterrupts(ActiveRequest* request, int64_t now_ns);
  // step_deadline.cc
  // It waits without a token, and even alone could not get one before its deadline.
  bool IsHopeless(ActiveRequest* request, int64_t now_ns) const;
  void CountTargets(const ActiveRequest& request, const FinishRecord& finish);

  // step_hold.cc
  int64_t HoldUntilNs();
  int64_t WantedHoldNs() const;

  // step_loop.cc
  StepPlan Schedule();
  StepPlan Plan(const StepLimit& limit);
  void TellTroubles() const;
  bool HasRunnable() const;
  bool IsMoving() const;
  void PublishCounters();

  // step_spill.cc
  void ReturnSpilled(const StepLimit& limit);
  void BringBack(ActiveRequest* request);
  void EndReturn(ActiveRequest* request);
  bool IsOnItsWay(const PrefixPlace& place) const;

  // step_compute.cc
  absl::Status Compute(const StepPlan& plan);
  absl::Status CheckRows(const StepPlan& plan) const;
  absl::Status SampleRows(const StepPlan& plan);
  absl::StatusOr<SampledToken> SampleRow(const ScheduledChunk& chunk, size_t row);
  absl::StatusOr<SampledToken> SampleAdjusted(const Sequence& sequence, const LogitsRow& row);
  void Commit(StepPlan* plan);
  void DropFailedRows(StepPlan* plan) const;
  void CommitRow(ActiveRequest* request, const SampledToken& token);
  void CommitPrompts(const std::vector<ScheduledChunk>& chunks);  // step_prompt.cc
  void StagePrompt(ActiveRequest* request, const ScheduledChunk& chunk, size_t row);
  void CommitScores(const std::vector<ScheduledChunk>& chunks);  // step_score.cc
  absl::Status CheckHidden(size_t row, int32_t count) const;     // step_embed.cc
  void CommitEmbeddings(const std::vector<ScheduledChunk>& chunks);
  void CommitScore(ActiveRequest* request, const ScheduledChunk& chunk, size_t row);
  absl::Status AddScores(ActiveRequest* request, const ScheduledChunk& chunk, size_t row);
  void CommitPins(const std::vector<ScheduledChunk>& chunks);  // step_pin.cc
  absl::Status PinPrefix(const ActiveRequest& request);
  absl::Status GrantPin(const ActiveRequest& request);
  // step_transfer.cc
  int32_t BlocksOfSlice() const;
  void CopyOut(ActiveRequest* request);
  void RestorePrefix(ActiveRequest* request);

  // step_compute.cc
  void StageToken(ActiveRequest* request, const SampledToken& token);
  void CountPlan(const StepPlan& plan);
  void CountStep(const StepPlan& plan);
  // `request` was in the step that runs, up to now.
  void AddStepTime(ActiveRequest* request, int64_t now_ns);
  // REQUIRES: the request's stats are those before this token.
  void CountToken(const ActiveRequest& request, int64_t now_ns);

  // step_end.cc
  void End(ActiveRequest* request, FinishReason reason, const absl::Status& status,
           int32_t stop_index = -1);
  // The same, also of a request that ended before in this step: what it should tell is lost.
  void EndOutOfMemory(ActiveRequest* request);
  void Settle(ActiveRequest* request);
  void CountEnd(const ActiveRequest& request, const FinishRecord& finish);
  // Out of the scheduler; its blocks go back.
  void Unschedule(ActiveRequest* request);
  void CountTimes(const ActiveRequest& request, const RequestStats& stats);
  void SweepEnded();
  void PushDeltas();
  void PauseIfSlow(ActiveRequest* request);
  // `worked`: the time since the step began counts as busy.
  void Deliver(bool worked);
  void HandleFailedStep(const StepPlan& plan, const absl::Status& status);
  void Fail(const absl::Status& status);
  void SendFinish(ActiveRequest* request);
  FinishRecord MakeFinish(const ActiveRequest& request) const;
  // What the log callback throws, or the lack of memory for the message, does not leave here.
  template <typename... Args>
  void LogError(const Args&... args) const;

  // step_trace.cc
  void TraceStep();
  void TraceRequest(const ActiveRequest& request);

  const StepLoopOptions options_;
  RequestQueue* const queue_;
  Scheduler* const scheduler_;
  Runner* const runner_;
  const Clock* const clock_;
  TraceRecorder* const trace_;
  const Logger logger_;
  // Made early: there may be no memory for them later.
  const absl::Status out_of_memory_;
  const absl::Status unknown_exception_;
  const struct {
    absl::Status callback_threw = absl::InternalError("the callback threw an exception");
    absl::Status cancelled = absl::CancelledError("cancelled");
    absl::Status completion_late =
        absl::DeadlineExceededError("the completion deadline has passed");
    absl::Status first_token_late =
        absl::DeadlineExceededError("the first-token deadline has passed");
    absl::Status hopeless =
        absl::DeadlineExceededError("the first token cannot come before its deadline any more");
  } statuses_;

  std::vector<std::unique_ptr<ActiveRequest>> incoming_;  // swapped with the queue
  std::vector<std::unique_ptr<ActiveRequest>> active_;    // open, in the order of their ids
  std::vector<std::unique_ptr<ActiveRequest>> ended_;   // of this step, FINISHED not yet delivered
  std::vector<std::unique_ptr<ActiveRequest>> failed_;  // of an unhealthy engine
  LogitEdits edits_;                                    // scratch memory, as the next
  RowAdjuster adjuster_;
  StepLogits logits_;                    // of this step
  std::vector<SampledRow> rows_;         // of this step
  std::vector<ScheduledChunk> chunks_;   // of this step, failed rows included
  std::vector<ActiveRequest*> touched_;  // of this step: got a token, or told their prompt
  int64_t held_until_ns_ = 0;            // 0: nobody is held
  int64_t hold_began_ns_ = 0;            // in real time
  uint64_t slice_left_ = 0;              // bytes that may still be copied before this step
  int num_failures_ = 0;                 // failed steps in a row
  int32_t last_step_tokens_ = 0;
  size_t last_step_sequences_ = 0;
  std::atomic<bool> healthy_{true};
  std::atomic<bool> flush_requested_{false};
  std::atomic<int64_t> last_step_ns_{0};  // when a step was computed last
  SessionHints session_hints_;
  PrefixPins pins_;

  StepCostModel cost_;
  StepLaps laps_;  // of this step
  StepLog log_;
  StepCounters counters_;
  mutable std::mutex published_mutex_;
  Counters published_;
};

}  // namespace llm
