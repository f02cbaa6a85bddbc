// Plans, allocates, calibrates, and starts.
#include "src/engine/open_engine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/float_state.h"
#include "src/base/status_macros.h"
#include "src/base/thread_pool.h"
#include "src/engine/byte_model.h"
#include "src/engine/calibrate.h"
#include "src/engine/engine_plan.h"
#include "src/engine/random.h"
#include "src/engine/system_limits.h"
#include "src/runner/model_runner.h"

namespace llm {
namespace {

// What the engine's parts borrow, destroyed after them.
struct Foundation {
  std::shared_ptr<const LoadedModel> model;
  Allocator allocator;
  std::unique_ptr<ThreadPool> pool;
};

absl::StatusOr<std::unique_ptr<Scheduler>> MakeScheduler(const EnginePlan& plan,
                                                         const ModelConfig& config,
                                                         const OpenOptions& options) {
  SchedulerOptions scheduler;
  scheduler.max_sequences = plan.runner.max_sequences;
  scheduler.max_context_tokens = plan.max_context_tokens;
  scheduler.max_logit_rows = plan.runner.max_logit_rows;
  scheduler.block_size = plan.runner.block_size;
  scheduler.groups = config.kv_groups;
  scheduler.num_blocks = plan.runner.num_blocks;
  scheduler.policy = options.policy;
  scheduler.prefix_cache = options.prefix_cache;
  scheduler.hash_key[0] = DrawRandom();
  scheduler.hash_key[1] = DrawRandom();
  return Scheduler::Create(scheduler);
}

EngineOptions MakeEngineOptions(const EnginePlan& plan, const OpenOptions& options) {
  EngineOptions engine;
  engine.max_step_tokens = plan.runner.max_step_tokens;
  engine.max_context_tokens = plan.max_context_tokens;
  if (options.max_queued_requests != 0) engine.bounds.max_requests = options.max_queued_requests;
  if (options.max_queued_tokens != 0) {
    engine.bounds.max_tokens =
        static_cast<int64_t>(std::min<uint64_t>(options.max_queued_tokens, INT64_MAX / 2));
  }
  if (options.max_pending_bytes != 0) engine.max_pending_bytes = options.max_pending_bytes;
  engine.manual = options.manual;
  engine.logger = options.logger;
  return engine;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> OpenEngine(std::shared_ptr<const LoadedModel> model,
                                                   const OpenOptions& options) {
  const ScopedFloatState float_state;
  if (model->header_only()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model ", model->name(), ": opened with header_only, it has no weights to serve"));
  }
  std::shared_ptr<const Clock> clock = options.clock;
  if (clock == nullptr) clock = std::make_shared<SteadyClock>();
  const int64_t start_ns = clock->NowNs();
  const Model& weights = model->model();
  const int64_t available = AvailableMemoryBytes();
  LLM_ASSIGN_OR_RETURN(EnginePlan plan, PlanEngine(weights.config, *weights.kernels,
                                                   model->float_activations(), options, available));
  auto foundation = std::make_shared<Foundation>();
  foundation->model = model;
  foundation->allocator.set_limit_bytes(options.max_memory_bytes);
  ThreadPoolOptions threads;
  threads.num_threads = plan.num_threads;
  if (options.spin_us != 0) threads.spin_ns = options.spin_us * 1000;
  LLM_ASSIGN_OR_RETURN(foundation->pool, ThreadPool::Create(threads));

  EngineParts parts;
  parts.text = model->text();
  parts.clock = std::move(clock);
  parts.times = model->times();
  LLM_ASSIGN_OR_RETURN(
      parts.runner,
      ModelRunner::Create(&weights, plan.runner, foundation->pool.get(), &foundation->allocator));
  LLM_ASSIGN_OR_RETURN(parts.scheduler, MakeScheduler(plan, weights.config, options));
  const int64_t calibrate_ns = parts.clock->NowNs();
  if (plan.calibrate) {
    LLM_ASSIGN_OR_RETURN(plan.runner.max_step_tokens,
                         CalibrateStepTokens(plan.runner, *parts.clock, parts.runner.get()));
  }
  parts.times.calibrate_ns = parts.clock->NowNs() - calibrate_ns;
  LLM_ASSIGN_OR_RETURN(parts.bytes, MakeByteModel(weights, plan.runner));
  parts.memory_bandwidth =
      MeasureReadBandwidth(weights.weights, *parts.clock, foundation->pool.get());
  Allocator* allocator = &foundation->allocator;
  parts.memory_bytes = [allocator] { return uint64_t{allocator->allocated_bytes()}; };
  parts.kv_bytes = plan.kv_bytes;
  parts.labels.model_name = model->name();
  parts.labels.block_size = plan.runner.block_size;
  parts.owner = foundation;
  parts.times.engine_ns = parts.clock->NowNs() - start_ns;
  options.logger.Info("engine: ", plan.num_threads, " threads, ", plan.kv_tokens, " KV tokens in ",
                      plan.kv_bytes, " bytes (", available, " were available), workspace ",
                      plan.workspace_bytes, " bytes, context ", plan.max_context_tokens,
                      ", sequences ", plan.runner.max_sequences, ", step budget ",
                      plan.runner.max_step_tokens);
  return Engine::Create(std::move(parts), MakeEngineOptions(plan, options));
}

}  // namespace llm
