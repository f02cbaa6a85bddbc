// The engine's mutable state for one request. Owned by the engine, changed by the engine thread
// only.
#pragma once

#include <cstdint>
#include <vector>

#include "src/cache/block_table.h"
#include "src/sequence/request.h"

namespace llm {

enum class SequenceStatus : int32_t { kWaiting, kRunning, kFinished };

struct SequenceStats {
  int64_t first_scheduled_ns = 0;
  int64_t first_token_ns = 0;
  int64_t last_token_ns = 0;
  int32_t num_cached_tokens = 0;  // prompt tokens found in the prefix cache at first admission
  int32_t num_preemptions = 0;
  int64_t num_recomputed_tokens = 0;  // computed again after preemptions
  int32_t num_retained_tokens = 0;  // findable in the prefix cache when it last gave up its blocks
};

// Invariants: num_computed_tokens < tokens.size() unless finished, or running only to hold what is
// copied out; waiting: every block table is empty and num_computed_tokens is 0; running: table g
// covers at least num_computed_tokens tokens.
struct Sequence {
  Request request;
  SequenceStatus status = SequenceStatus::kWaiting;
  std::vector<int32_t> tokens;  // prompt, then generated
  int32_t num_computed_tokens = 0;
  std::vector<BlockTable> block_tables;  // [kv_groups]
  SequenceStats stats;
  uint64_t arrival_index = 0;  // order of first Scheduler::Add, from 1; ties and FCFS go by it
  int32_t max_computed_tokens =
      0;  // the highest num_computed_tokens ever: below it, work is recomputation
  // Logits are wanted of every token from here on (a score, or a prompt that is told; the prefix
  // cache is not read meanwhile); -1: of the last known one, to sample.
  int32_t score_begin = -1;
  // Of every token from score_begin on the hidden state is wanted, not logits.
  bool wants_hidden = false;
  // The other choices of the same request, this one among them: equal prompts, salts and cache use.
  // Null: there are none. None of them is freed while another one names it here.
  const std::vector<Sequence*>* siblings = nullptr;
  // Its prefix is being brought into the cache: it is not admitted meanwhile.
  bool awaits_prefix = false;
  // The scheduler's: its first tokens came from a running sibling when it was last admitted.
  bool shares_prompt = false;
  // The scheduler's: whole blocks that it took from others when it was last admitted.
  int32_t num_shared_blocks = 0;
  // The scheduler's: num_tokens() when it was last added or planned.
  int32_t planned_tokens = 0;
  // The scheduler's: it counted as long when it was last admitted, not only grew long since.
  bool started_long = false;
  // The scheduler's: where in the prefix cache the sequence's blocks are published; -1: nowhere.
  int32_t prefix_node = -1;

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_prompt_tokens() const { return static_cast<int32_t>(request.prompt.size()); }
  int32_t num_generated_tokens() const { return num_tokens() - num_prompt_tokens(); }
};

}  // namespace llm
