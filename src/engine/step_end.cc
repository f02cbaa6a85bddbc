// How requests end, how their events leave, and what a failed step does.
#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/nvtx.h"
#include "src/engine/step_loop.h"

namespace llm {
namespace {

// Failures in a row after which a request has to go.
constexpr int kMaxFailures = 3;

RequestStage StageOf(const SequenceStats& stats) {
  if (stats.first_scheduled_ns == 0) return RequestStage::kQueue;
  return stats.first_token_ns == 0 ? RequestStage::kPrefill : RequestStage::kDecode;
}

// Neither by its host nor by a fault.
bool EndedByItself(FinishReason reason) {
  return reason == FinishReason::kEndToken || reason == FinishReason::kStopToken ||
         reason == FinishReason::kStopString || reason == FinishReason::kLength;
}

// A host's clock that leaps by centuries, with several requests open, exceeds any total; read as
// unsigned ones, they wrap as all counters do.
void AddWrapping(int64_t ns, int64_t* total) {
  *total = static_cast<int64_t>(static_cast<uint64_t>(*total) + static_cast<uint64_t>(ns));
}

}  // namespace

template <typename... Args>
void StepLoop::LogError(const Args&... args) const {
  try {
    logger_.Error(args...);
  } catch (...) {
    return;
  }
}

// Withheld text and incomplete characters of a cancelled request are not shown: what was delivered
// stays a prefix of the answer that it would have had, and a stop string might have cut them off.
void StepLoop::End(ActiveRequest* request, FinishReason reason, const absl::Status& status,
                   int32_t stop_index) {
  if (!request->open()) return;
  request->reason = reason;
  request->end_status = status;
  request->stop_index = stop_index;
  if (request->transfer != nullptr && healthy()) {
    scheduler_->DropAdoption(&request->transfer->adoption);
  }
  if (request->spill_return != nullptr && healthy()) EndReturn(request);
  if (request->scheduled && healthy()) {
    if (EndedByItself(reason) && request->generates()) scheduler_->NoteEnd(*request);
    Unschedule(request);
  }
  request->scheduled = false;
  request->end_ns = clock_->NowNs();
}

void StepLoop::EndOutOfMemory(ActiveRequest* request) {
  End(request, FinishReason::kError, out_of_memory_);
  request->reason = FinishReason::kError;
  request->end_status = out_of_memory_;
  request->stop_index = -1;
}

// Once its reason is final, and before its reader can know that it ended: counts it and gives its
// place back. Choices are counted as one, with the last of them. Allocates nothing.
void StepLoop::Settle(ActiveRequest* request) {
  if (std::exchange(request->settled, true)) return;
  request->clock.Finish(request->end_ns, clock_->NowNs());
  request->end_ns = request->request.arrival_ns + request->clock.total_ns();
  FinishRecord finish = MakeFinish(*request);
  ChoiceGroup* group = request->group.get();
  if (group != nullptr) {
    std::vector<Sequence*>* siblings = &group->siblings;
    siblings->erase(std::remove(siblings->begin(), siblings->end(), request), siblings->end());
    group->Add(finish, request->end_status);
    if (--group->num_open > 0) return;
    group->place.Release();
    finish = group->finish;
  }
  CountEnd(*request, finish);
  CountTargets(*request, finish);
  CountTimes(*request, finish.stats);
  log_.Add(RecordKind::kFinished, request->request.id, finish.stats.generated_tokens,
           static_cast<int64_t>(finish.reason), request->end_ns);
  queue_->Forget(request->request.id);
  request->place.Release();
}

void StepLoop::Unschedule(ActiveRequest* request) {
  const bool held_blocks = request->status == SequenceStatus::kRunning;
  scheduler_->Remove(request);
  request->scheduled = false;
  if (!held_blocks) return;
  counters_.histograms.Add(HistogramId::kRetainedTokens,
                           static_cast<uint64_t>(request->stats.num_retained_tokens));
}

void StepLoop::CountEnd(const ActiveRequest& request, const FinishRecord& finish) {
  ++counters_.finished_requests_total;
  if (finish.reason == FinishReason::kCancelled) ++counters_.cancelled_requests_total;
  if (finish.reason == FinishReason::kDeadline) ++counters_.deadline_requests_total;
  if (finish.reason == FinishReason::kError) ++counters_.failed_requests_total;
  ++counters_.finished_by_reason[static_cast<size_t>(finish.reason)];
  if (finish.reason == FinishReason::kDeadline) {
    ++counters_.deadlines_by_stage[static_cast<size_t>(StageOf(request.stats))];
  }
  Histograms& histograms = counters_.histograms;
  histograms.Add(HistogramId::kPromptTokens, request.request.prompt.size());
  histograms.Add(HistogramId::kGeneratedTokens,
                 static_cast<uint64_t>(finish.stats.generated_tokens));
}

void StepLoop::CountTimes(const ActiveRequest& request, const RequestStats& stats) {
  RequestTimes& totals = counters_.request_ns_total;
  AddWrapping(stats.queue_ns, &totals.queue_ns);
  AddWrapping(stats.prefill_ns, &totals.prefill_ns);
  AddWrapping(stats.stall_ns, &totals.stall_ns);
  AddWrapping(stats.decode_ns, &totals.decode_ns);
  AddWrapping(stats.deliver_ns, &totals.deliver_ns);
  Histograms& histograms = counters_.histograms;
  histograms.AddTime(HistogramId::kQueueTime, stats.queue_ns);
  counters_.AddClassTime(HistogramId::kCompletionTime, request.request.request_class,
                         stats.total_ns);
  const int64_t first_token_ns = request.stats.first_token_ns;
  if (first_token_ns == 0) return;
  histograms.AddTime(HistogramId::kDecodeTime, request.end_ns - first_token_ns);
  if (request.group == nullptr) return;  // counted with its first token
  histograms.AddTime(HistogramId::kPrefillTime, first_token_ns - request.stats.first_scheduled_ns);
}

// Moves the ended requests aside.
void StepLoop::SweepEnded() {
  size_t kept = 0;
  for (std::unique_ptr<ActiveRequest>& request : active_) {
    if (request->open()) {
      std::swap(active_[kept++], request);
      continue;
    }
    Settle(request.get());
    ended_.push_back(std::move(request));  // within the capacity that Admit reserved
  }
  active_.resize(kept);
}

void StepLoop::PushDeltas() {
  for (ActiveRequest* request : touched_) {
    try {
      request->sink->PushPrompt(request->outbox, &request->staged_prompt);
      request->sink->Push(request->outbox, &request->staged);
    } catch (const std::bad_alloc&) {
      // The delta is lost, so nothing may follow it: the request ends here, whatever it had come
      // to.
      request->staged_prompt.Clear();
      request->staged.Clear();
      EndOutOfMemory(request);
    }
    PauseIfSlow(request);
  }
  touched_.clear();
}

// A paused request leaves the scheduler as a preempted one does: it holds no blocks while its
// reader sleeps, and finds most of them in the prefix cache when it comes back.
void StepLoop::PauseIfSlow(ActiveRequest* request) {
  Outbox* outbox = request->outbox.get();
  if (!request->open() || !healthy() || request->paused) return;  // paused: touched twice
  if (outbox->pending_bytes.load() <= options_.max_pending_bytes) return;
  Unschedule(request);
  log_.Add(RecordKind::kPaused, request->request.id, request->num_computed_tokens,
           request->stats.num_retained_tokens, laps_.last_ns());
  request->paused = true;
  request->status = SequenceStatus::kWaiting;
  outbox->wake_when_taken.store(
      true);  // before the next Admit looks: a take in between is seen by one of the two
}

void StepLoop::Deliver(bool worked) {
  NvtxRange range("deliver");
  PushDeltas();
  SweepEnded();
  laps_.End(StepPart::kDeliver);
  if (worked) laps_.AddTo(&counters_.part_ns_total);
  PublishCounters();
  for (const std::unique_ptr<ActiveRequest>& request : ended_) SendFinish(request.get());
  ended_.clear();
  // This last bit shows in the next step's copy.
  laps_.End(StepPart::kDeliver);
  if (!worked) return;
  laps_.AddTo(&counters_.part_ns_total);
  TraceStep();
}

void StepLoop::SendFinish(ActiveRequest* request) {
  if (std::exchange(request->finish_sent, true)) return;
  TraceRequest(*request);
  request->sink->Finish(request->outbox, MakeFinish(*request), request->end_status.message());
  ChoiceGroup* group = request->group.get();
  if (group == nullptr || --group->num_unsent > 0) return;
  request->sink->Finish(group->outbox, group->finish, group->end_status.message());
}

FinishRecord StepLoop::MakeFinish(const ActiveRequest& request) const {
  FinishRecord finish;
  finish.choice = request.outbox->choice;
  finish.reason = request.reason;
  finish.status = request.reason == FinishReason::kError ? absl::StatusCode::kInternal
                                                         : request.end_status.code();
  finish.stop_index = request.stop_index;
  RequestStats& stats = finish.stats;
  const SequenceStats& from = request.stats;
  const RequestTimes& times = request.clock.times();
  stats.struct_size = sizeof(stats);
  stats.prompt_tokens = request.num_prompt_tokens();
  stats.cached_tokens = from.num_cached_tokens;
  stats.generated_tokens = request.num_generated_tokens();
  stats.preemptions = from.num_preemptions;
  stats.recomputed_tokens = from.num_recomputed_tokens;
  stats.queue_ns = times.queue_ns;
  if (from.first_token_ns != 0) stats.ttft_ns = from.first_token_ns - request.request.arrival_ns;
  stats.total_ns = request.clock.total_ns();
  stats.seed = request.request.sampling.seed;
  stats.prefill_ns = times.prefill_ns;
  stats.stall_ns = times.stall_ns;
  stats.decode_ns = times.decode_ns;
  stats.deliver_ns = times.deliver_ns;
  stats.longest_gap_ns = request.longest_gap_ns;
  return finish;
}

void StepLoop::HandleFailedStep(const StepPlan& plan, const absl::Status& status) {
  scheduler_->Rollback(plan);
  rows_.clear();
  ++counters_.failed_steps_total;
  log_.Fail(plan, static_cast<int32_t>(status.code()), laps_.last_ns());
  ++num_failures_;
  const absl::Status device = runner_->DeviceStatus();
  if (!device.ok()) {
    Fail(absl::InternalError(absl::StrCat("the device is lost: ", device.message())));
    return;
  }
  LogError("step failed (", num_failures_, " in a row, ", plan.chunks.size(),
           " requests): ", status.message());
  if (num_failures_ < kMaxFailures) return;
  num_failures_ = 0;
  if (active_.size() <= 1) {
    Fail(absl::InternalError(absl::StrCat("a step with one request left failed ", kMaxFailures,
                                          " times: ", status.message())));
    return;
  }
  // Without a plan, planning failed: any request may be the one too many.
  ActiveRequest* newest = plan.chunks.empty() ? active_.back().get() : nullptr;
  for (const ScheduledChunk& chunk : plan.chunks) {
    ActiveRequest* request = RequestOf(chunk.sequence);
    if (newest == nullptr || request->request.id >= newest->request.id) newest = request;
  }
  End(newest, FinishReason::kError, status);
}

// Allocates nothing: the reason may be that there is no memory.
void StepLoop::Fail(const absl::Status& status) {
  if (!healthy_.exchange(false)) return;
  queue_->Fail(status);
  PushDeltas();  // what a request that ended well in this step has to tell belongs to its end
  std::vector<std::unique_ptr<ActiveRequest>> queued;
  queue_->Drain(&queued);
  const auto for_all = [&](auto&& apply) {
    for (auto* requests : {&ended_, &active_, &incoming_, &queued}) {
      for (const std::unique_ptr<ActiveRequest>& request : *requests) {
        if (request != nullptr) apply(request.get());
      }
    }
  };
  for_all([&](ActiveRequest* request) {
    End(request, FinishReason::kError, status);
    Settle(request);
  });
  PublishCounters();
  for_all([&](ActiveRequest* request) { SendFinish(request); });
  // The scheduler, which is not asked any more, may still point at those that it knew: they live
  // until the engine closes.
  failed_.swap(active_);
  incoming_.clear();
  LogError("the engine is unhealthy: ", status.message());
}

void StepLoop::CancelAll() {
  if (!healthy()) return;
  try {
    log_.Begin(laps_.Begin());
    Admit();
    for (const std::unique_ptr<ActiveRequest>& request : active_) {
      End(request.get(), FinishReason::kCancelled,
          absl::CancelledError("cancelled: the engine shuts down"));
    }
    Deliver(true);
  } catch (...) {
    Fail(out_of_memory_);
  }
}

}  // namespace llm
