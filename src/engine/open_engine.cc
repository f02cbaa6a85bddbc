// Plans, allocates, measures, and starts.
#include "src/engine/open_engine.h"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/affinity.h"
#include "src/base/float_state.h"
#include "src/base/status_macros.h"
#include "src/base/thread_pool.h"
#include "src/engine/byte_model.h"
#include "src/engine/engine_plan.h"
#include "src/engine/random.h"
#include "src/engine/sim_runner.h"
#include "src/engine/system_limits.h"
#include "src/runner/model_runner.h"

namespace llm {
namespace {

constexpr uint64_t kSpillBytes = uint64_t{1} << 30;  // of a second tier that names no bound

// What the engine's parts borrow, destroyed after them.
struct Foundation {
  std::shared_ptr<const LoadedModel> model;
  HookFault hook_fault;
  Allocator allocator;
  std::unique_ptr<ThreadPool> pool;
};

absl::Status LayFoundation(const EnginePlan& plan, const OpenOptions& options,
                           Foundation* foundation) {
  LLM_RETURN_IF_ERROR(CheckCpus(options.host.cpu_ids));
  foundation->allocator.set_limit_bytes(options.max_memory_bytes);
  foundation->allocator.set_hooks(options.host.allocator);
  ThreadPoolOptions threads;
  threads.num_threads = plan.num_threads;
  if (options.spin_us != 0) threads.spin_ns = options.spin_us * 1000;
  threads.cpu_ids = options.host.cpu_ids;
  threads.executor = options.host.executor;
  threads.fault = &foundation->hook_fault;
  LLM_ASSIGN_OR_RETURN(foundation->pool, ThreadPool::Create(threads));
  return absl::OkStatus();
}

std::shared_ptr<const Clock> MakeClock(const HostHooks& host, HookFault* fault) {
  if (host.clock == nullptr) return std::make_shared<SteadyClock>();
  return std::make_shared<HookClock>(host.clock, host.clock_user_data, fault);
}

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
  scheduler.admission = options.admission;
  scheduler.max_long_sequences =
      static_cast<int32_t>(std::min<int64_t>(options.max_long_requests, plan.runner.max_sequences));
  scheduler.long_tokens = static_cast<int32_t>(
      options.long_request_tokens != 0
          ? std::min<int64_t>(options.long_request_tokens, plan.max_context_tokens)
          : plan.max_context_tokens / 4);
  scheduler.prefix_cache = options.prefix_cache;
  scheduler.hash_key[0] = DrawRandom();
  scheduler.hash_key[1] = DrawRandom();
  try {
    return Scheduler::Create(scheduler);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "kv_tokens: no memory to keep account of ", plan.kv_tokens, " tokens in ",
        std::accumulate(scheduler.num_blocks.begin(), scheduler.num_blocks.end(), 0LL), " blocks"));
  }
}

// Activations in other arithmetic, and sums in other orders, give other keys and values.
KvIdentity MakeKvIdentity(const EnginePlan& plan, const Model& model, bool float_activations,
                          const Runner& runner) {
  KvIdentity kv;
  kv.numerics_id = absl::StrCat(NumericsId(*model.kernels), float_activations ? ":float" : "",
                                plan.runner.batch_invariant ? "" : ":batched");
  kv.kv_dtype = DTypeName(plan.runner.kv_dtype);
  kv.shape.block_size = plan.runner.block_size;
  if (runner.block_bytes(0) == 0) return kv;
  for (size_t g = 0; g < model.config.kv_groups.size(); ++g) {
    const KvGroupSpec& group = model.config.kv_groups[g];
    kv.shape.groups.push_back({.window = group.window,
                               .num_layers = static_cast<int32_t>(group.layers.size()),
                               .block_bytes = runner.block_bytes(static_cast<int>(g))});
  }
  return kv;
}

EngineOptions MakeEngineOptions(const EnginePlan& plan, const ModelConfig& config,
                                const OpenOptions& options) {
  EngineOptions engine;
  engine.max_step_tokens = plan.runner.max_step_tokens;
  engine.step_ns = plan.step_ns;
  engine.token_gap_target_ns = options.token_gap_target_ns;
  engine.max_context_tokens = plan.max_context_tokens;
  engine.long_rope_above = config.long_rope_above;
  if (options.max_queued_requests != 0) engine.bounds.max_requests = options.max_queued_requests;
  if (options.max_queued_tokens != 0) {
    engine.bounds.max_tokens =
        static_cast<int64_t>(std::min<uint64_t>(options.max_queued_tokens, INT64_MAX / 2));
  }
  if (options.max_pending_bytes != 0) engine.max_pending_bytes = options.max_pending_bytes;
  engine.hold_ns = options.hold_us * 1000;
  engine.manual = options.manual;
  engine.refuse_late = options.refuse_late;
  if (!options.host.cpu_ids.empty()) engine.cpu_id = options.host.cpu_ids[0];
  engine.logger = options.logger;
  return engine;
}

absl::Status CheckSimulation(const OpenOptions& options, bool simulated) {
  if (!simulated) {
    return options.has_sim_cost ? absl::InvalidArgumentError(
                                      "sim_costs: the model was not opened for LLM_DEVICE_SIM")
                                : absl::OkStatus();
  }
  if (!options.has_sim_cost) {
    return absl::InvalidArgumentError("sim_costs: a simulated engine must know what steps cost");
  }
  if (!options.manual) {
    return absl::InvalidArgumentError("drive: a simulated engine is driven by hand");
  }
  if (options.host.clock != nullptr) {
    return absl::InvalidArgumentError("host: now_ns: a simulated engine has a clock of its own");
  }
  if (options.hold_us != 0) {
    return absl::UnimplementedError("hold_us: a simulated engine holds no requests");
  }
  return absl::OkStatus();
}

// The parts that compute, and those that measure them.
absl::Status BuildDevice(const LoadedModel& model, const EnginePlan& plan,
                         const OpenOptions& options, Foundation* foundation, EngineParts* parts) {
  const Model& weights = model.model();
  LLM_RETURN_IF_ERROR(LayFoundation(plan, options, foundation));
  parts->clock = MakeClock(options.host, &foundation->hook_fault);
  LLM_ASSIGN_OR_RETURN(
      std::unique_ptr<ModelRunner> runner,
      ModelRunner::Create(&weights, plan.runner, foundation->pool.get(), &foundation->allocator));
  if (!runner->library_status().ok()) {
    options.logger.Warning("batch_invariant is off, and yet linear layers have their own kernels: ",
                           runner->library_status().message());
  }
  parts->runner = std::move(runner);
  LLM_ASSIGN_OR_RETURN(parts->bytes, MakeByteModel(weights, plan.runner));
  if (weights.device == nullptr) {
    parts->memory_bandwidth =
        MeasureReadBandwidth(weights.weights, SteadyClock(), foundation->pool.get());
  }
  return foundation->hook_fault.status();
}

// The same for a device that only takes its time: no memory and no threads.
void BuildSimulated(const LoadedModel& model, const EnginePlan& plan, const OpenOptions& options,
                    EngineParts* parts) {
  const ModelConfig& config = model.model().config;
  parts->virtual_clock = std::make_shared<ManualClock>();
  parts->clock = parts->virtual_clock;
  parts->runner =
      std::make_unique<SimRunner>(options.sim_cost, config.vocab_size, parts->virtual_clock);
  parts->bytes = SimulatedByteModel(config, plan.runner, model.weights_bytes());
}

// A simulated engine takes memory for the account of its blocks alone: it may be larger than this
// machine.
absl::StatusOr<int64_t> AvailableBytes(const LoadedModel& model) {
  if (model.simulated()) return std::numeric_limits<int64_t>::max();
  if (model.model().device == nullptr) return AvailableMemoryBytes();
  LLM_ASSIGN_OR_RETURN(const size_t free_bytes, model.model().device->FreeBytes());
  return static_cast<int64_t>(free_bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> OpenEngine(const std::shared_ptr<const LoadedModel>& model,
                                                   const OpenOptions& options) {
  const ScopedFloatState float_state;
  if (model->header_only()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model ", model->name(), ": opened with header_only, it has no weights to serve"));
  }
  LLM_RETURN_IF_ERROR(CheckSimulation(options, model->simulated()));
  const SteadyClock steady;  // what opening costs is measured in real time, whatever the host's is
  const int64_t start_ns = steady.NowNs();
  const Model& weights = model->model();
  LLM_ASSIGN_OR_RETURN(const int64_t available, AvailableBytes(*model));
  LLM_ASSIGN_OR_RETURN(
      const EnginePlan plan,
      PlanEngine(weights.config, *weights.kernels, model->float_activations(), options, available));
  auto foundation = std::make_shared<Foundation>();
  foundation->model = model;

  EngineParts parts;
  parts.text = model->text();
  parts.times = model->times();
  parts.hook_fault = &foundation->hook_fault;
  if (model->simulated()) {
    BuildSimulated(*model, plan, options, &parts);
  } else {
    LLM_RETURN_IF_ERROR(BuildDevice(*model, plan, options, foundation.get(), &parts));
  }
  LLM_ASSIGN_OR_RETURN(parts.scheduler, MakeScheduler(plan, weights.config, options));
  Allocator* allocator = &foundation->allocator;
  parts.memory_bytes = [allocator] { return uint64_t{allocator->allocated_bytes()}; };
  parts.allocator = allocator;
  parts.kv = MakeKvIdentity(plan, weights, model->float_activations(), *parts.runner);
  if (!options.spill.folder.empty()) {
    SpillOptions spill = options.spill;
    if (spill.max_bytes == 0) spill.max_bytes = kSpillBytes;
    LLM_ASSIGN_OR_RETURN(parts.spill,
                         SpillTier::Create(spill, parts.kv.shape, parts.runner.get(),
                                           std::make_shared<SteadyClock>(), options.logger));
  }
  parts.model_id = [source = model.get()] { return source->Identity(); };
  parts.kv_bytes = plan.kv_bytes;
  parts.labels.model_name = model->name();
  parts.labels.block_size = plan.runner.block_size;
  parts.owner = foundation;
  parts.times.engine_ns = steady.NowNs() - start_ns;
  options.logger.Info("engine: ", plan.num_threads, " threads, ", plan.kv_tokens, " KV tokens in ",
                      plan.kv_bytes, " bytes (", available, " were available), workspace ",
                      plan.workspace_bytes, " bytes, context ", plan.max_context_tokens,
                      ", sequences ", plan.runner.max_sequences, ", step budget ",
                      plan.step_ns != 0 ? "up to " : "", plan.runner.max_step_tokens);
  return Engine::Create(std::move(parts), MakeEngineOptions(plan, weights.config, options));
}

}  // namespace llm
