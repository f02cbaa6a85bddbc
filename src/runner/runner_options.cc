// Sizes are bounded one by one first, so that no product of them overflows.
#include "src/runner/runner_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/runner/runner_workspace.h"

namespace llm {
namespace {

constexpr int kMaxStepTokens = 1 << 20;
constexpr int kMaxSequences = 1 << 16;
constexpr int kMaxContext = 1 << 26;
constexpr int kMaxBlockSize = 1 << 12;

absl::Status CheckRange(const char* name, int value, int min, int max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("runner: ", name, " is ", value, ", expected ", min, " to ", max));
}

absl::Status CheckOptions(const ModelConfig& config, const RunnerOptions& options) {
  LLM_RETURN_IF_ERROR(CheckRange("max_step_tokens", options.max_step_tokens, 1, kMaxStepTokens));
  LLM_RETURN_IF_ERROR(CheckRange("max_sequences", options.max_sequences, 1, kMaxSequences));
  LLM_RETURN_IF_ERROR(CheckRange("max_logit_rows", options.max_logit_rows, 1, kMaxStepTokens));
  LLM_RETURN_IF_ERROR(CheckRange("max_context", options.max_context, 1, kMaxContext));
  LLM_RETURN_IF_ERROR(CheckRange("block_size", options.block_size, kKeyTile, kMaxBlockSize));
  if (!IsPowerOfTwo(options.block_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("runner: block_size ", options.block_size, " is not a power of two"));
  }
  if (options.kv_dtype == DType::kI32) {
    return absl::InvalidArgumentError("runner: keys and values cannot be stored as i32");
  }
  if (options.kv_dtype == DType::kI4 && config.head_dim % kKvGroup != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("runner: int4 keys and values need a head_dim that is a multiple of ",
                     kKvGroup, ", the model has ", config.head_dim));
  }
  if (!options.num_blocks.empty() && options.num_blocks.size() != config.kv_groups.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("runner: num_blocks for ", options.num_blocks.size(),
                     " groups, the model has ", config.kv_groups.size()));
  }
  for (const int blocks : options.num_blocks) {
    // Slots are int32: block * block_size + offset.
    LLM_RETURN_IF_ERROR(CheckRange("num_blocks", blocks, 1, INT32_MAX / options.block_size));
  }
  return absl::OkStatus();
}

}  // namespace

KvLayout MakeKvLayout(const ModelConfig& config, const RunnerOptions& options) {
  return {.dtype = options.kv_dtype,
          .block_size = options.block_size,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .constant_scales = options.kv_dtype == DType::kF8E4M3 && !config.kv_scales.keys.empty()};
}

GraphShape MakeGraphShape(const ModelConfig& config, const RunnerOptions& options) {
  return {.max_rows =
              std::min({options.max_sequences, options.max_step_tokens, options.max_logit_rows}),
          .max_context = options.max_context,
          .block_size = options.block_size,
          .num_layers = config.num_layers};
}

absl::StatusOr<RunnerBytes> PlanRunner(const ModelConfig& config, const KernelTable& kernels,
                                       const RunnerOptions& options, int num_threads) {
  LLM_RETURN_IF_ERROR(CheckOptions(config, options));
  RunnerBytes bytes;
  const size_t layer_block = MakeKvLayout(config, options).block_bytes();
  for (size_t group = 0; group < config.kv_groups.size(); ++group) {
    bytes.kv_block.push_back(layer_block * config.kv_groups[group].layers.size());
    if (options.num_blocks.empty()) continue;
    const auto group_bytes =
        CheckedMul(bytes.kv_block[group], static_cast<size_t>(options.num_blocks[group]));
    const auto total = group_bytes ? CheckedAdd(bytes.kv_cache, *group_bytes) : std::nullopt;
    if (!total) return absl::InvalidArgumentError("runner: the size of the kv cache overflows");
    bytes.kv_cache = *total;
  }
  Arena counting(nullptr);
  Arena pinned(nullptr);
  Arena* host = kernels.open_device != nullptr ? &pinned : &counting;
  LayOutRunner(config, kernels, options, num_threads, host, &counting);
  bytes.pinned = pinned.peak_bytes();
  if (kernels.open_device != nullptr && options.graphs) {
    bytes.graphs = GraphBytes(MakeGraphShape(config, options));
  }
  bytes.workspace = counting.peak_bytes() + bytes.pinned + bytes.graphs;
  return bytes;
}

}  // namespace llm
