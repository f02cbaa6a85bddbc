// Logits come last: they are the largest array, and on their own pages.
#include "src/runner/runner_workspace.h"

namespace llm {

RunnerWorkspace LayOutRunner(const ModelConfig& config, const KernelTable& kernels,
                             const RunnerOptions& options, int num_threads, Arena* arena) {
  RunnerWorkspace workspace;
  workspace.batch_builder =
      std::make_unique<BatchBuilder>(BatchShape{.max_tokens = options.max_step_tokens,
                                                .max_sequences = options.max_sequences,
                                                .max_logit_rows = options.max_logit_rows,
                                                .max_context = options.max_context,
                                                .block_size = options.block_size,
                                                .groups = config.kv_groups,
                                                .num_blocks = options.num_blocks},
                                     arena);
  workspace.argmax = arena->Take<int32_t>(options.max_logit_rows);
  workspace.max = arena->Take<float>(options.max_logit_rows);
  workspace.log_sum_exp = arena->Take<float>(options.max_logit_rows);
  workspace.decoder_shape = {.max_tokens = options.max_step_tokens,
                             .max_sequences = options.max_sequences,
                             .max_logit_rows = options.max_logit_rows,
                             .max_context = options.max_context,
                             .num_threads = num_threads,
                             .float_activations = options.float_activations};
  workspace.decoder = LayOutDecoder(config, kernels, workspace.decoder_shape, arena);
  workspace.logits = arena->Take<float>(int64_t{options.max_logit_rows} * config.vocab_size);
  return workspace;
}

}  // namespace llm
