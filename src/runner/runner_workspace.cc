// Logits come last: they are the largest array, and on their own pages.
#include "src/runner/runner_workspace.h"

#include <algorithm>

#include "src/base/math.h"

namespace llm {
namespace {

constexpr size_t kLine = 64;

// Those of the tables that kernels make, beside the batch's arrays. Sequences of longrope have a
// table of positions each.
size_t RopeBytes(const ModelConfig& config, const BatchShape& shape) {
  const size_t table = RoundUp(static_cast<size_t>(config.rope_dim / 2) * sizeof(float), kLine) * 2;
  const size_t positions = static_cast<size_t>(shape.max_tokens) * sizeof(int32_t) +
                           static_cast<size_t>(shape.max_sequences) * kLine;
  return config.ropes.size() * table + positions;
}

UploadMemory TakeUploads(const ModelConfig& config, const BatchShape& shape, const DrawShape& draws,
                         bool run_ahead, Arena* host, Arena* device) {
  UploadMemory uploads;
  uploads.bytes =
      BatchBuilder::ArrayBytes(shape) + RopeBytes(config, shape) + DrawBuilder::ArrayBytes(draws);
  const auto stages = static_cast<int64_t>(UploadMemory::kStages * uploads.bytes);
  uploads.pinned = host->Take<std::byte>(stages);
  uploads.device = device->Take<std::byte>(static_cast<int64_t>(uploads.bytes));
  if (run_ahead) uploads.staged = device->Take<std::byte>(stages);
  return uploads;
}

DenseShape LinearShape(const ModelConfig& config, const RunnerOptions& options) {
  return {.max_rows = std::max(options.max_step_tokens, options.max_logit_rows),
          .max_cols = std::max({config.hidden_size, config.q_size(), config.ffn_size,
                                config.experts.shared_ffn_size, config.latent.query_rank})};
}

absl::Span<std::byte> TakeLibrary(const ModelConfig& config, const KernelTable& kernels,
                                  const RunnerOptions& options, Arena* device) {
  if (options.batch_invariant || kernels.dense_workspace_bytes == nullptr) return {};
  const size_t bytes = kernels.dense_workspace_bytes(LinearShape(config, options));
  return {device->Take<std::byte>(static_cast<int64_t>(bytes)), bytes};
}

}  // namespace

RunnerWorkspace LayOutRunner(const ModelConfig& config, const KernelTable& kernels,
                             const RunnerOptions& options, int num_threads, Arena* host,
                             Arena* device) {
  const BatchShape shape = {.max_tokens = options.max_step_tokens,
                            .max_sequences = options.max_sequences,
                            .max_logit_rows = options.max_logit_rows,
                            .max_context = options.max_context,
                            .block_size = options.block_size,
                            .groups = config.kv_groups,
                            .num_blocks = options.num_blocks};
  RunnerWorkspace workspace;
  const DrawShape draws = {.max_sequences = options.max_sequences,
                           .max_logit_rows = options.max_logit_rows,
                           .vocab_size = config.vocab_size};
  const int max_draws = host == device ? 0 : draws.max_sequences;
  workspace.batch_builder = std::make_unique<BatchBuilder>(shape, host);
  StepResults& results = workspace.results;
  results.measures = TakeMeasures(options.max_logit_rows, max_draws, device);
  workspace.decoder_shape = {.max_tokens = options.max_step_tokens,
                             .max_sequences = options.max_sequences,
                             .max_logit_rows = options.max_logit_rows,
                             .max_context = options.max_context,
                             .num_threads = num_threads,
                             .float_activations = options.float_activations};
  workspace.decoder = LayOutDecoder(config, kernels, workspace.decoder_shape, device);
  results.hidden = workspace.decoder.head_normed.values;
  const int64_t num_logits = int64_t{options.max_logit_rows} * config.vocab_size;
  results.logits = device->Take<float>(num_logits);
  if (host == device) {
    workspace.host_results[0] = results;
    return workspace;
  }
  workspace.uploads = TakeUploads(config, shape, draws, options.run_ahead, host, device);
  if (options.run_ahead) workspace.wanted_builder = std::make_unique<BatchBuilder>(shape, host);
  workspace.library = TakeLibrary(config, kernels, options, device);
  if (workspace.library.empty()) {
    workspace.uploads.rounded_bytes = RoundedBytes(LinearShape(config, options));
    workspace.uploads.rounded =
        device->Take<std::byte>(static_cast<int64_t>(workspace.uploads.rounded_bytes));
  }
  workspace.draw_builder = std::make_unique<DrawBuilder>(draws, host);
  workspace.edited_logits = device->Take<float>(draws.max_edits());
  // A step that runs ahead brings no rows of logits and no hidden states (see Queue): those of the
  // step before may be read meanwhile.
  float* hidden = host->Take<float>(int64_t{options.max_logit_rows} * config.hidden_size);
  float* logits = host->Take<float>(num_logits);
  for (StepResults& one : workspace.host_results) {
    one = {.measures = TakeMeasures(options.max_logit_rows, max_draws, host),
           .hidden = hidden,
           .logits = logits};
  }
  return workspace;
}

}  // namespace llm
