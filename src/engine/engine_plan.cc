// Checks ranges first, so that the arithmetic that follows cannot overflow.
#include "src/engine/engine_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/engine/system_limits.h"

namespace llm {
namespace {

constexpr int64_t kMaxKvTokens = int64_t{1} << 28;
constexpr int64_t kDefaultSequences = 32;
// Without a step budget: the most tokens, and a time in which a cancel or an arrival is seen.
constexpr int64_t kMaxStepTokens = 512;
constexpr int64_t kStepNs = 100'000'000;
// A score moves ahead so many tokens a step at least: each weight is read once for all of them.
constexpr int kScoreRows = 32;
constexpr int64_t kDefaultKvTokens = 8 * 2048;
constexpr int64_t kFewestKvTokens = 256;
// What is never taken of a device by default: the driver loads kernels later, and allocations have
// pages of 2 MiB. Others keep a tenth, which pays for workspace and graphs too; ours are counted.
constexpr int64_t kLeastReserveBytes = int64_t{256} << 20;
constexpr int64_t kReserveDivisor = 20;

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", value, " is outside [", low, ", ", high, "]"));
}

absl::Status CheckOptions(const OpenOptions& options) {
  LLM_RETURN_IF_ERROR(CheckRange("num_threads", options.num_threads, 0, 1024));
  if (options.block_size != 0 &&
      (options.block_size < 16 || options.block_size > 4096 || !IsPowerOfTwo(options.block_size))) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_size: ", options.block_size, " is not a power of two in [16, 4096]"));
  }
  LLM_RETURN_IF_ERROR(CheckRange(
      "kv_tokens", static_cast<int64_t>(std::min<uint64_t>(options.kv_tokens, INT64_MAX)), 0,
      kMaxKvTokens));
  LLM_RETURN_IF_ERROR(
      CheckRange("max_context_tokens", options.max_context_tokens, 0, kMaxKvTokens));
  LLM_RETURN_IF_ERROR(CheckRange("max_sequences", options.max_sequences, 0, 1 << 16));
  LLM_RETURN_IF_ERROR(CheckRange("max_step_tokens", options.max_step_tokens, 0, 1 << 20));
  LLM_RETURN_IF_ERROR(CheckRange("token_gap_target_ns", options.token_gap_target_ns, 0, INT64_MAX));
  return absl::OkStatus();
}

// Blocks of a group for `kv_tokens`. A window group needs, for each running sequence, the window
// and the step's tokens.
int64_t GroupBlocks(const KvGroupSpec& group, const EnginePlan& plan) {
  const int64_t block_size = plan.runner.block_size;
  const int64_t full = CeilDiv(plan.kv_tokens, block_size);
  if (group.window == 0) return full;
  const int64_t per_sequence =
      CeilDiv<int64_t>(group.window + plan.runner.max_step_tokens, block_size) + 2;
  return std::min(full, per_sequence * plan.runner.max_sequences);
}

// Sets the blocks and returns what the runner will allocate.
absl::StatusOr<RunnerBytes> SizeRunner(const ModelConfig& config, const KernelTable& kernels,
                                       EnginePlan* plan) {
  plan->runner.num_blocks.clear();
  for (const KvGroupSpec& group : config.kv_groups) {
    plan->runner.num_blocks.push_back(static_cast<int>(GroupBlocks(group, *plan)));
  }
  return PlanRunner(config, kernels, plan->runner, plan->num_threads);
}

// Bytes that one more token costs in the full groups, and what a window group costs in all.
absl::Status ChooseKvTokens(const ModelConfig& config, const KernelTable& kernels,
                            int64_t available_bytes, EnginePlan* plan) {
  plan->kv_tokens = std::max<int64_t>(config.context_length, kDefaultKvTokens);
  const int64_t quarter = available_bytes / 4;
  while (true) {
    LLM_ASSIGN_OR_RETURN(const RunnerBytes bytes, SizeRunner(config, kernels, plan));
    if (static_cast<int64_t>(bytes.kv_cache) <= quarter || plan->kv_tokens <= kFewestKvTokens) {
      return absl::OkStatus();
    }
    // In proportion, then a little less each round: window groups do not shrink with it.
    const double ratio = static_cast<double>(quarter) / static_cast<double>(bytes.kv_cache);
    const int64_t smaller = static_cast<int64_t>(static_cast<double>(plan->kv_tokens) * ratio);
    plan->kv_tokens =
        std::max<int64_t>(kFewestKvTokens, std::min(smaller, plan->kv_tokens * 15 / 16));
  }
}

// On a device: all that the workspace leaves of its free memory and of the limit.
absl::Status FillDevice(const ModelConfig& config, const KernelTable& kernels,
                        const OpenOptions& options, int64_t available_bytes, EnginePlan* plan) {
  const int64_t reserve = std::max(kLeastReserveBytes, available_bytes / kReserveDivisor);
  const auto usable = static_cast<uint64_t>(std::max<int64_t>(0, available_bytes - reserve));
  const uint64_t limit = options.max_memory_bytes != 0 ? options.max_memory_bytes : UINT64_MAX;
  const int64_t block_size = plan->runner.block_size;
  int64_t fits = CeilDiv(kFewestKvTokens, block_size);
  int64_t too_many = kMaxKvTokens / block_size + 1;
  while (too_many - fits > 1) {
    const int64_t blocks = fits + (too_many - fits) / 2;
    plan->kv_tokens = blocks * block_size;
    LLM_ASSIGN_OR_RETURN(const RunnerBytes bytes, SizeRunner(config, kernels, plan));
    const uint64_t total = bytes.kv_cache + bytes.workspace;
    (total - bytes.pinned <= usable && total <= limit ? fits : too_many) = blocks;
  }
  plan->kv_tokens = fits * block_size;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EnginePlan> PlanEngine(const ModelConfig& config, const KernelTable& kernels,
                                      bool float_activations, const OpenOptions& options,
                                      int64_t available_bytes) {
  LLM_RETURN_IF_ERROR(CheckOptions(options));
  EnginePlan plan;
  plan.num_threads = static_cast<int>(options.num_threads);
  if (kernels.open_device != nullptr) {
    plan.num_threads = 1;  // the one that puts work on the device's stream
  } else if (plan.num_threads == 0) {
    LLM_ASSIGN_OR_RETURN(plan.num_threads, UsableCores());
  }
  plan.step_ns = options.max_step_tokens == 0 ? kStepNs : 0;
  RunnerOptions& runner = plan.runner;
  runner.kv_dtype = options.kv_dtype;
  runner.float_activations = float_activations;
  runner.run_ahead = options.run_ahead;
  runner.batch_invariant = options.batch_invariant || kernels.dense_workspace_bytes == nullptr;
  runner.graphs = options.graphs && runner.batch_invariant;  // the library's work is in no graph
  runner.block_size = options.block_size != 0 ? static_cast<int>(options.block_size) : 16;
  runner.max_sequences =
      static_cast<int>(options.max_sequences != 0 ? options.max_sequences : kDefaultSequences);
  runner.max_step_tokens =
      static_cast<int>(options.max_step_tokens == 0 ? kMaxStepTokens : options.max_step_tokens);
  runner.max_logit_rows = std::max(runner.max_sequences, kScoreRows);
  runner.max_context = config.context_length;  // for sizing; the final value is below
  if (options.kv_tokens != 0) {
    plan.kv_tokens = RoundUp(static_cast<int64_t>(options.kv_tokens),
                             options.block_size != 0 ? options.block_size : 16);
  } else if (kernels.open_device != nullptr) {
    LLM_RETURN_IF_ERROR(FillDevice(config, kernels, options, available_bytes, &plan));
  } else {
    LLM_RETURN_IF_ERROR(ChooseKvTokens(config, kernels, available_bytes, &plan));
  }
  const int64_t most = std::min<int64_t>(config.context_length, plan.kv_tokens);
  const int64_t context = options.max_context_tokens != 0 ? options.max_context_tokens : most;
  if (context > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_context_tokens: ", context, " exceeds ", most, ", the smaller of the model's ",
        config.context_length, " and kv_tokens ", plan.kv_tokens));
  }
  plan.max_context_tokens = static_cast<int32_t>(context);
  runner.max_context = plan.max_context_tokens;
  LLM_ASSIGN_OR_RETURN(const RunnerBytes bytes, SizeRunner(config, kernels, &plan));
  plan.kv_bytes = bytes.kv_cache;
  plan.workspace_bytes = bytes.workspace;
  const uint64_t total = plan.kv_bytes + plan.workspace_bytes;
  if (options.max_memory_bytes != 0 && total > options.max_memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "max_memory_bytes: ", options.max_memory_bytes, " is less than the ", plan.kv_bytes,
        " bytes of KV and ", plan.workspace_bytes, " of workspace that these options need: lower ",
        plan.workspace_bytes < options.max_memory_bytes ? "kv_tokens"
                                                        : "max_step_tokens and max_sequences"));
  }
  const uint64_t on_device = total - bytes.pinned;
  if (kernels.open_device != nullptr && on_device > static_cast<uint64_t>(available_bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("device memory: ", available_bytes, " bytes are free, less than the ",
                     plan.kv_bytes, " bytes of KV and ", plan.workspace_bytes - bytes.pinned,
                     " of workspace that these options need"));
  }
  return plan;
}

}  // namespace llm
