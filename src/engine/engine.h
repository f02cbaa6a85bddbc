// An engine: takes requests from any thread, runs steps on its own thread or the host's, and hands
// events to queues and callbacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/clock.h"
#include "src/base/hook_fault.h"
#include "src/base/log.h"
#include "src/base/trace.h"
#include "src/engine/call_count.h"
#include "src/engine/callback_dispatcher.h"
#include "src/engine/completion_queue.h"
#include "src/engine/embed.h"
#include "src/engine/kv_image.h"
#include "src/engine/metrics.h"
#include "src/engine/metrics_text.h"
#include "src/engine/model_text.h"
#include "src/engine/request_queue.h"
#include "src/engine/request_spec.h"
#include "src/engine/score.h"
#include "src/engine/step_gate.h"
#include "src/engine/step_loop.h"

namespace llm {

struct EngineOptions {
  int32_t max_step_tokens = 64;
  int64_t step_ns = 0;              // what a step may take, as far as it can be predicted; 0: any
  int64_t token_gap_target_ns = 0;  // of requests that state none; 0: none
  int32_t max_context_tokens = 0;   // prompt and output of one request
  int32_t long_rope_above = 0;      // of the model's config
  QueueBounds bounds;
  size_t max_pending_bytes = size_t{1} << 20;
  int64_t hold_ns = 0;  // as StepLoopOptions::hold_ns
  uint64_t slice_bytes = StepLoopOptions().slice_bytes;
  bool manual = false;
  bool refuse_late = true;  // requests that will miss their deadlines
  int32_t cpu_id = -1;      // where the engine thread runs; -1: anywhere
  Logger logger;
};

// What an engine runs on. Destroyed in reverse order, so that the owner goes last.
struct EngineParts {
  std::shared_ptr<const void> owner;  // of everything that `text` borrows
  ModelText text;
  std::shared_ptr<const Clock> clock;
  std::shared_ptr<ManualClock> virtual_clock;  // a simulated engine's, which is `clock`; else null
  std::shared_ptr<const Clock> device_clock;   // as StepLoopOptions has it; null: the virtual one
  const HookFault* hook_fault = nullptr;       // the owner's; may be null
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Runner> runner;
  std::unique_ptr<SpillTier> spill;        // null: no second tier
  std::function<uint64_t()> memory_bytes;  // counted by the engine's allocator; may be null
  Allocator* allocator = nullptr;  // counts what calls hold beside the engine; null: one of its own
  KvIdentity kv;                   // of the runner's blocks, but for the model
  std::function<uint64_t()> model_id;  // of kv; computed when it is asked for
  uint64_t kv_bytes = 0;
  MetricsLabels labels;
  ByteModel bytes;                // what a step moves
  uint64_t memory_bandwidth = 0;  // bytes per second; 0: not measured
  OpenTimes times;
};

class Engine {
 public:
  // Starts the threads unless manual. RESOURCE_EXHAUSTED when one cannot be created.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(EngineParts parts,
                                                        const EngineOptions& options);
  // REQUIRES: Close returned OK, or no other thread uses the engine and this is none of its
  // callbacks.
  ~Engine();

  // OK: *id is set before any event can be seen, and exactly one FINISHED follows. Otherwise
  // neither.
  absl::Status Submit(const RequestSpec& spec, uint64_t* id);
  absl::Status Cancel(uint64_t id) { return queue_.Cancel(id); }
  // A request that was refused; by the layers above, where Submit did not see it.
  void CountRejected(absl::StatusCode code);
  // Drops the cached blocks that nothing uses, before the next step. FAILED_PRECONDITION: closed.
  absl::Status FlushCache();
  // Computes the prompt of `prefix`, as far as it is not cached, and holds its whole blocks against
  // eviction until UnpinPrefix; blocks until they are held, as Score does, with its errors.
  // RESOURCE_EXHAUSTED also when they would leave no room for a request of the whole context.
  absl::StatusOr<uint64_t> PinPrefix(RequestSpec prefix);
  // From the next step on. NOT_FOUND; FAILED_PRECONDITION: closed.
  absl::Status UnpinPrefix(uint64_t pin_id);
  // The keys and values of the whole blocks of `prefix`, computed where they are not cached. As
  // PinPrefix in all else. UNIMPLEMENTED: a device that does not show them.
  absl::StatusOr<std::shared_ptr<const KvImage>> ReadPrefix(RequestSpec prefix);
  // Makes an image of this identity findable for requests of the salt; its blocks are cached ones,
  // or with `pin` held until UnpinPrefix of what is returned. RESOURCE_EXHAUSTED: no room.
  absl::StatusOr<uint64_t> RestorePrefix(std::shared_ptr<KvImage> image,
                                         const std::string& cache_salt, bool pin);
  KvIdentity kv_identity() const;
  int32_t max_context_tokens() const { return options_.max_context_tokens; }
  Allocator* allocator() const {
    return parts_.allocator != nullptr ? parts_.allocator : &own_allocator_;
  }
  // Orders the eviction of the session's cached blocks, from the next step on. INVALID_ARGUMENT:
  // session 0; RESOURCE_EXHAUSTED: too many wait for a step; FAILED_PRECONDITION: closed.
  absl::Status HintSession(uint64_t session_id, SessionHint hint);
  // Log-probabilities of tokens first..end of a text, each given all before it; blocks until they
  // are there. Manual drive: steps the engine itself. Errors as Submit's; CANCELLED by the handler
  // or shutdown; FAILED_PRECONDITION inside a step of this engine.
  absl::StatusOr<std::vector<float>> Score(const ScoreSpec& score);
  // The pooled hidden state of a text, [hidden_size]. As Score in all else.
  absl::StatusOr<std::vector<float>> Embed(const EmbedSpec& embed);
  // Manual drive: one step and the callbacks that it made due, on this thread. False when there was
  // nothing to do.
  absl::StatusOr<bool> Step();

  // See llm_engine_shutdown. DEADLINE_EXCEEDED: not yet.
  absl::Status Shutdown(int64_t timeout_ns);
  // Shuts down and joins the threads. FAILED_PRECONDITION inside a callback.
  absl::Status Close();

  const std::shared_ptr<CompletionQueue>& queue() const { return own_queue_; }
  EngineMetrics Metrics() const;
  const MetricsLabels& labels() const { return parts_.labels; }
  // The last steps and the last events of requests; from any thread.
  const StepLog& log() const { return loop_.log(); }
  // Held by each call that waits inside, as long as it may touch the engine.
  CallCount* calls() { return &calls_; }
  // Written at Close when it is still on.
  TraceRecorder& trace() { return trace_; }

  // For tests, between steps of a manually driven engine.
  const StepLoop& loop() const { return loop_; }
  const Scheduler& scheduler() const { return *parts_.scheduler; }

 private:
  Engine(EngineParts parts, const EngineOptions& options);
  absl::Status Start();
  void ThreadLoop();
  int64_t IdleTimeoutNs() const;
  // Whether the host calls from inside a step (a row callback), or from any of its callbacks.
  bool InStep() const { return step_thread_.load() == std::this_thread::get_id(); }
  bool InHostCode() const;

  // deadlines.cc
  ForecastQuery NewForecast() const;
  // Sets what its first token would cost. DEADLINE_EXCEEDED: it is predicted to come too late.
  bool IsStale(int64_t now_ns, const FirstTokenForecast& forecast) const;
  absl::Status CheckDeadlines(Request* request) const;
  // `full`, and when to try again.
  absl::Status TellWhenToRetry(const absl::Status& full) const;

  // simulated_time.cc
  // What needs logits: UNIMPLEMENTED.
  absl::Status CheckSimulable(const RequestSpec& spec) const;
  // Runs steps, or jumps, until the virtual clock shows `arrival_ns`.
  absl::Status AwaitArrival(int64_t arrival_ns);

  // engine_submit.cc
  void TraceSubmit(int64_t start_ns, uint64_t id);
  absl::Status SubmitReserved(const RequestSpec& spec, QueuePlace place, uint64_t* id);
  std::unique_ptr<ActiveRequest> MakeActive(const RequestSpec& spec, Request request) const;
  absl::Status SubmitChoices(const RequestSpec& spec, const Request& request, QueuePlace place,
                             uint64_t* id);
  absl::StatusOr<Request> MakeRequest(const RequestSpec& spec, QueuePlace* place) const;
  absl::StatusOr<std::vector<int32_t>> Tokenize(const RequestSpec& spec, QueuePlace* place) const;
  absl::Status TokenizeBadWords(const RequestSpec& spec, SamplingParams* sampling) const;
  int64_t TokenBound(const RequestSpec& spec, size_t text_bytes) const;
  std::shared_ptr<Outbox> MakeOutbox(const RequestSpec& spec) const;

  // prefix_transfer.cc
  absl::Status CheckTransfer(absl::string_view call) const;
  absl::Status CutToBlocks(std::vector<int32_t>* prompt) const;
  absl::Status PrepareTransfer(const RequestSpec& spec, Request* request) const;

  // score.cc
  absl::Status CheckMayWait(absl::string_view call) const;
  absl::Status SubmitAndWait(RequestSpec* spec, uint64_t* id);
  absl::Status WaitForFinish(const RequestSpec& spec);
  void GiveUp(const RequestSpec& spec, uint64_t id);
  absl::Status ShutdownManual(int64_t timeout_ns);
  absl::Status ShutdownThreads(int64_t timeout_ns);

  EngineParts parts_;
  mutable Allocator own_allocator_;
  const EngineOptions options_;
  TraceRecorder trace_;
  RequestQueue queue_;
  const std::shared_ptr<CompletionQueue> own_queue_;
  const std::shared_ptr<CallbackDispatcher> dispatcher_;
  StepLoop loop_;
  CallCount calls_;
  StepGate gate_;  // manual: held during a step; threads: held by the engine thread until it has
                   // ended all
  std::atomic<std::thread::id> step_thread_{};  // the one that runs a step now
  std::thread thread_;
};

}  // namespace llm
