// The work of one step: which tokens of which sequences, and the block copies that come before.
#pragma once

#include <cstdint>
#include <vector>

#include "src/cache/block_table.h"
#include "src/scheduler/step_work.h"
#include "src/sequence/sequence.h"

namespace llm {

// Tokens [begin, begin + length) of the sequence are computed; logits are wanted for the last
// num_logits of them (1 when the chunk reaches the last known token, so that a new one is sampled;
// 0 in the middle of a prompt; as many as lie at or behind score_begin where the sequence is
// scored). Of the last num_hidden the hidden state after the final norm is wanted, instead of
// logits.
struct ScheduledChunk {
  Sequence* sequence = nullptr;
  int32_t begin = 0;
  int32_t length = 0;
  int32_t num_logits = 0;
  int32_t num_hidden = 0;
};

// Whether the host looks at the logits of the chunk's rows, beyond their measures (the best id, its
// logit, the log of the sum).
inline bool NeedsLogits(const ScheduledChunk& chunk) {
  if (chunk.num_logits != 1 || chunk.sequence->score_begin >= 0) return chunk.num_logits != 0;
  const SamplingParams& params = chunk.sequence->request.sampling;
  return params.temperature > 0.0f || params.num_logprobs > 0 ||
         AdjustsRow(params, chunk.sequence->num_generated_tokens());
}

// One token of a sequence that gives the next.
inline bool IsDecode(const ScheduledChunk& chunk) {
  return chunk.length == 1 && chunk.num_logits == 1 && chunk.num_hidden == 0;
}

// The token that the sequence gets next is its last: nothing is computed of it.
inline bool EndsWithNextToken(const Sequence& sequence) {
  return sequence.num_generated_tokens() + 1 >= sequence.request.stop.max_new_tokens;
}

// The first `tokens` tokens of `source` are copied to `destination`, which is fresh, before the
// forward pass.
struct BlockCopy {
  int group = 0;
  BlockId source = kNullBlock;
  BlockId destination = kNullBlock;
  int32_t tokens = 0;
};

struct StepPlan {
  std::vector<ScheduledChunk> chunks;
  std::vector<BlockCopy> block_copies;
  int32_t num_tokens = 0;
  StepWork work;
  // All that runs decodes from here on, nobody who waits could start, and whoever does not end with
  // this step has blocks for the next one too (StepLimit::look_ahead).
  bool looks_ahead = false;

  // What Rollback needs; others leave it alone.
  struct Undo {
    Sequence* sequence = nullptr;
    bool admitted = false;            // was waiting before this plan
    std::vector<size_t> table_sizes;  // [kv_groups] before this plan
  };
  std::vector<Undo> undo;

  // Who gave up its blocks for this plan; also in a plan without chunks.
  struct Preempted {
    Sequence* sequence = nullptr;
    int32_t computed_tokens = 0;  // that it had
    int32_t retained_tokens = 0;  // of these, left in the prefix cache
  };
  std::vector<Preempted> preempted;
};

}  // namespace llm
