// The one buffer of a runner: batch arrays, the decoder's intermediate values, logits and their
// measures.
#pragma once

#include <memory>

#include "src/model/arena.h"
#include "src/model/decoder_workspace.h"
#include "src/runner/batch_builder.h"
#include "src/runner/runner_options.h"

namespace llm {

struct RunnerWorkspace {
  std::unique_ptr<BatchBuilder> batch_builder;
  DecoderShape decoder_shape;
  DecoderWorkspace decoder;
  float* logits = nullptr;       // [max_logit_rows, vocab_size]
  int32_t* argmax = nullptr;     // [max_logit_rows]
  float* max = nullptr;          // [max_logit_rows]
  float* log_sum_exp = nullptr;  // [max_logit_rows]
};

// Planning and creation both come here, so that the plan cannot differ from what is allocated.
RunnerWorkspace LayOutRunner(const ModelConfig& config, const KernelTable& kernels,
                             const RunnerOptions& options, int num_threads, Arena* arena);

}  // namespace llm
