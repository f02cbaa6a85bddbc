// Two prefills of 64 tokens: the first warms caches and threads, the second counts.
#include "src/engine/calibrate.h"

#include <algorithm>

#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr int32_t kProbeTokens = 64;  // the smallest budget, and enough for the kernels' full tiles
constexpr int64_t kTargetNs = 100'000'000;  // a cancel is seen once a step

// Blocks 0, 1, ... of every group: nothing else uses the pools yet.
Sequence ProbeSequence(const RunnerOptions& options, int32_t length) {
  Sequence sequence;
  sequence.tokens.assign(static_cast<size_t>(length), 0);
  sequence.request.prompt = sequence.tokens;
  sequence.status = SequenceStatus::kRunning;
  for (size_t g = 0; g < options.num_blocks.size(); ++g) {
    BlockTable table;
    for (int32_t b = 0; b * options.block_size < length; ++b) table.push_back(b);
    sequence.block_tables.push_back(std::move(table));
  }
  return sequence;
}

// The tokens of a probe that every pool and the context can hold.
int32_t ProbeLength(const RunnerOptions& options) {
  int64_t length = std::min({kProbeTokens, options.max_step_tokens, options.max_context});
  for (const int blocks : options.num_blocks) {
    length = std::min<int64_t>(length, int64_t{blocks} * options.block_size);
  }
  return static_cast<int32_t>(length);
}

}  // namespace

absl::StatusOr<int32_t> CalibrateStepTokens(const RunnerOptions& options, const Clock& clock,
                                            Runner* runner) {
  const int32_t length = ProbeLength(options);
  Sequence sequence = ProbeSequence(options, length);
  StepPlan plan;
  plan.chunks.push_back({&sequence, 0, length, 1});
  plan.num_tokens = length;
  int64_t step_ns = 0;
  for (int probe = 0; probe < 2; ++probe) {
    const int64_t start_ns = clock.NowNs();
    LLM_RETURN_IF_ERROR(runner->Execute(plan).status());
    step_ns = std::max<int64_t>(1, clock.NowNs() - start_ns);
    if (step_ns > 4 * kTargetNs)
      return kProbeTokens;  // warm or not, it will not get below: open no slower than needed
  }
  const int64_t tokens =
      kTargetNs / step_ns >= (1 << 20) ? (1 << 26) : kTargetNs * length / step_ns;
  const int64_t rounded = tokens / kProbeTokens * kProbeTokens;
  const int64_t most = std::max<int32_t>(kProbeTokens, options.max_step_tokens);
  return static_cast<int32_t>(std::clamp<int64_t>(rounded, kProbeTokens, most));
}

}  // namespace llm
