// Threads, shutdown and metrics; the work itself is in StepLoop.
#include "src/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/base/affinity.h"
#include "src/base/bound.h"
#include "src/base/library_thread.h"
#include "src/base/status_macros.h"
#include "src/engine/locked_scheduler.h"

namespace llm {
namespace {

StepLoopOptions LoopOptions(const EngineParts& parts, const EngineOptions& options) {
  StepLoopOptions loop;
  loop.max_step_tokens = options.max_step_tokens;
  loop.step_ns = options.step_ns;
  loop.hold_ns = options.hold_ns;
  loop.vocab_size = parts.text.vocab_size;
  loop.hidden_size = parts.text.hidden_size;
  loop.max_pending_bytes = options.max_pending_bytes;
  loop.bytes = parts.bytes;
  loop.spill = parts.spill.get();
  loop.hook_fault = parts.hook_fault;
  loop.slice_bytes = options.slice_bytes;
  loop.slice_block_bytes = KvImage::BytesOfIndex(parts.kv.shape);
  loop.refuse_late = options.refuse_late;
  loop.device_clock =
      parts.device_clock != nullptr ? parts.device_clock.get() : parts.virtual_clock.get();
  return loop;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(EngineParts parts,
                                                       const EngineOptions& options) {
  // Callers ask it for forecasts while the engine's thread plans.
  parts.scheduler = std::make_unique<LockedScheduler>(std::move(parts.scheduler));
  std::unique_ptr<Engine> engine(new Engine(std::move(parts), options));
  if (!options.manual) LLM_RETURN_IF_ERROR(engine->Start());
  return engine;
}

Engine::Engine(EngineParts parts, const EngineOptions& options)
    : parts_(std::move(parts)),
      options_(options),
      queue_(options.bounds, std::make_shared<Waker>()),
      own_queue_(std::make_shared<CompletionQueue>(options.manual)),
      dispatcher_(std::make_shared<CallbackDispatcher>(parts_.clock, &trace_)),
      loop_(LoopOptions(parts_, options), &queue_, parts_.scheduler.get(), parts_.runner.get(),
            parts_.clock.get(), &trace_, options.logger) {
  if (parts_.spill != nullptr) parts_.scheduler->SetEvictionListener(parts_.spill.get());
  parts_.runner->SetTrace(&trace_, parts_.clock.get());
}

Engine::~Engine() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
  dispatcher_->Stop();
}

absl::Status Engine::Start() {
  LLM_RETURN_IF_ERROR(dispatcher_->Start());
  gate_.TryEnter();
  const absl::Status started = StartThread(
      "engine thread", [this] { ThreadLoop(); }, &thread_);
  if (!started.ok()) {
    gate_.Leave();
    return started;
  }
  return options_.cpu_id < 0 ? absl::OkStatus() : PinThread(options_.cpu_id, &thread_);
}

// RunStep and CancelAll catch everything themselves.
void Engine::ThreadLoop() {
  step_thread_.store(std::this_thread::get_id());
  while (loop_.healthy() && !queue_.closed()) {
    if (!loop_.RunStep()) queue_.waker()->Wait(IdleTimeoutNs());
  }
  loop_.CancelAll();
  gate_.Leave();
}

// Only paused requests, and those that are held for others, are left when there is nothing to do:
// their deadlines still count.
int64_t Engine::IdleTimeoutNs() const {
  const int64_t deadline_ns = TighterBound(loop_.NextDeadlineNs(), loop_.held_until_ns());
  if (deadline_ns == 0) return -1;
  return std::max<int64_t>(0, deadline_ns - parts_.clock->NowNs());
}

absl::Status Engine::FlushCache() {
  LLM_RETURN_IF_ERROR(queue_.CheckOpen());
  loop_.RequestFlush();
  queue_.waker()->Wake();
  return absl::OkStatus();
}

absl::Status Engine::HintSession(uint64_t session_id, SessionHint hint) {
  if (session_id == 0) return absl::InvalidArgumentError("session_id: 0 is no session");
  LLM_RETURN_IF_ERROR(queue_.CheckOpen());
  LLM_RETURN_IF_ERROR(loop_.session_hints()->Push(session_id, hint));
  queue_.waker()->Wake();
  return absl::OkStatus();
}

absl::StatusOr<bool> Engine::Step() {
  if (!options_.manual) {
    return absl::FailedPreconditionError("step: the engine has its own threads");
  }
  if (!gate_.TryEnter()) {
    return absl::FailedPreconditionError("step: a step of this engine is running");
  }
  const auto leave = absl::MakeCleanup([this] { gate_.Leave(); });  // whatever is thrown
  const absl::Status open = queue_.CheckOpen();
  bool worked = false;
  if (open.ok()) {
    step_thread_.store(std::this_thread::get_id());
    worked = loop_.RunStep() || loop_.held_until_ns() != 0;
    step_thread_.store(std::thread::id());
  }
  dispatcher_->DrainHere();
  // The step that turns the engine unhealthy worked: it delivered. Later ones say why.
  if (!open.ok()) return open;
  return worked;
}

bool Engine::InHostCode() const { return dispatcher_->InCallback() || InStep(); }

absl::Status Engine::Shutdown(int64_t timeout_ns) {
  queue_.Close();
  if (InHostCode()) {
    return absl::DeadlineExceededError(
        "shutdown: intake is stopped, but the calling callback runs");
  }
  return options_.manual ? ShutdownManual(timeout_ns) : ShutdownThreads(timeout_ns);
}

absl::Status Engine::ShutdownManual(int64_t timeout_ns) {
  if (!gate_.Enter(WaitDeadline(timeout_ns))) {
    return absl::DeadlineExceededError("shutdown: a step is running");
  }
  loop_.CancelAll();
  dispatcher_->DrainHere();
  gate_.Leave();
  return absl::OkStatus();
}

absl::Status Engine::ShutdownThreads(int64_t timeout_ns) {
  const WaitDeadline deadline(timeout_ns);
  if (!gate_.Enter(deadline)) return absl::DeadlineExceededError("shutdown: a step is running");
  gate_.Leave();
  if (!dispatcher_->WaitIdle(deadline)) {
    return absl::DeadlineExceededError("shutdown: a callback is running");
  }
  return absl::OkStatus();
}

absl::Status Engine::Close() {
  if (InHostCode()) {
    return absl::FailedPreconditionError("close: called inside a callback of this engine");
  }
  LLM_RETURN_IF_ERROR(Shutdown(-1));
  calls_.WaitForNone();
  if (thread_.joinable()) thread_.join();
  dispatcher_->Stop();
  if (trace_.on()) {
    const absl::Status written = trace_.Stop();
    if (!written.ok()) options_.logger.Error(written.message());
  }
  return absl::OkStatus();
}

EngineMetrics Engine::Metrics() const {
  EngineMetrics metrics;
  const StepLoop::Counters counters = loop_.counters();
  metrics.healthy = loop_.healthy();
  metrics.step = counters.step;
  metrics.scheduler = counters.scheduler;
  const RequestQueue::Counters intake =
      queue_.counters();  // after the loop's: never fewer submitted than finished
  metrics.submitted_requests_total = intake.submitted_total;
  metrics.rejected = intake.rejected;
  metrics.rejected_requests_total = intake.rejected.total();
  metrics.callback_ns_total = dispatcher_->callback_ns_total();
  metrics.total_blocks_current = static_cast<uint64_t>(counters.scheduler.free_blocks_current) +
                                 static_cast<uint64_t>(counters.scheduler.held_blocks_current) +
                                 static_cast<uint64_t>(counters.scheduler.cached_blocks_current);
  metrics.kv_bytes_current = parts_.kv_bytes;
  metrics.memory_bandwidth_current = parts_.memory_bandwidth;
  metrics.times = parts_.times;
  metrics.clock_ns_current = static_cast<uint64_t>(parts_.clock->NowNs());
  metrics.memory_bytes_current = counters.step.event_bytes_current;
  if (parts_.memory_bytes) metrics.memory_bytes_current += parts_.memory_bytes();
  return metrics;
}

}  // namespace llm
