// Decides what each step computes: decodes first, then prefill chunks; admits, preempts, reuses
// cached prefixes. Numbers only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/cache/eviction_listener.h"
#include "src/cache/eviction_order.h"
#include "src/cache/kv_groups.h"
#include "src/scheduler/adoption.h"
#include "src/scheduler/forecast.h"
#include "src/scheduler/step_cost_model.h"
#include "src/scheduler/step_plan.h"
#include "src/sequence/sequence.h"

namespace llm {

// How much of the blocks a request must find free before it starts.
enum class AdmissionPolicy : int32_t {
  kPredict = 0,  // for its tokens and the output that those before it let expect, of all running
  kReserve = 1,  // for the longest output that it may have: nothing is ever preempted for room
  kGreedy = 2,   // for its tokens, and a block to grow into
};

// Who goes first. No order lets anybody wait for ever: whoever has waited long enough goes before
// all that come later.
enum class SchedulingPolicy : int32_t {
  kFcfs = 0,
  kPriority = 1,  // each step of priority is worth kPriorityStepNs of waiting
  kDeadline = 2,  // who must start first for its first-token deadline; without one, kNoDeadlineNs
                  // after arrival
};
inline constexpr int64_t kPriorityStepNs = 10'000'000'000;
inline constexpr int64_t kNoDeadlineNs = 10'000'000'000;

// Who gives up its blocks when they run out, of those less important than the one that needs them.
enum class VictimPolicy : int32_t {
  kLeastWork = 0,  // who loses the fewest computed tokens
  kNewest = 1,     // the least important: to compare with
};

struct SchedulerOptions {
  int32_t max_sequences = 64;      // running at once
  int32_t max_context_tokens = 0;  // prompt + generated of one sequence
  int32_t max_logit_rows = 0;      // of one step; raised to max_sequences
  int32_t block_size = 16;
  std::vector<KvGroupSpec> groups;
  std::vector<int> num_blocks;  // [groups]
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  AdmissionPolicy admission = AdmissionPolicy::kPredict;
  VictimPolicy victims = VictimPolicy::kLeastWork;
  // Of the running sequences, so many may know long_tokens tokens or more; others wait, and shorter
  // ones behind them pass. 0: all of them.
  int32_t max_long_sequences = 0;
  int32_t long_tokens = 0;
  bool prefix_cache = true;
  uint64_t hash_key[2] = {0, 0};  // keys the prefix hashes, drawn per process
};

// What one step may hold.
struct StepLimit {
  int32_t max_tokens = 0;
  // How long it may take as far as `cost` can tell. Decodes that state a tighter token gap lower
  // it. 0: as long as it takes.
  int64_t step_ns = 0;
  const StepCostModel* cost = nullptr;  // null: nothing limits the time
  bool decodes_only = false;            // prefills and admissions are left for the step after
  bool look_ahead = false;              // see StepPlan::looks_ahead
};

// Totals since the start, and current values. Written by the engine thread.
struct SchedulerCounters {
  uint64_t preemptions_total = 0;
  uint64_t recomputed_tokens_total = 0;  // computed before, computed again
  uint64_t rehit_tokens_total =
      0;  // found in the cache again by a preempted sequence that came back
  uint64_t cached_tokens_total = 0;   // prompt tokens that came from the prefix cache
  uint64_t queried_tokens_total = 0;  // prompt tokens looked up there
  uint64_t evicted_blocks_total = 0;
  int32_t running_current = 0;
  int32_t waiting_current = 0;
  int32_t free_blocks_current = 0;  // all groups together, like the next two
  int32_t held_blocks_current = 0;
  int32_t cached_blocks_current = 0;
  int32_t pinned_blocks_current = 0;  // part of the held ones
};

class Scheduler {
 public:
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const SchedulerOptions& options);
  virtual ~Scheduler() = default;

  // INVALID_ARGUMENT, with the numbers, when the request can never fit the context or the block
  // pools, even alone.
  virtual absl::Status CheckFits(int64_t num_prompt_tokens, int64_t max_new_tokens) const = 0;

  // Takes a waiting sequence in, at the end of its priority, or, after a Remove, where it stood
  // before. It stays the caller's, until Remove.
  // Throws std::bad_alloc with nothing changed.
  virtual void Add(Sequence* sequence) = 0;
  // Forgets a waiting or running sequence and releases its blocks (full ones stay cached). Sets
  // kFinished.
  virtual void Remove(Sequence* sequence) = 0;

  // The sequence has come to its own end (no cancel, no fault): others of its request_class are
  // expected to be like it. Before Remove.
  virtual void NoteEnd(const Sequence& sequence) = 0;

  // When a request that is not known yet would get its first token, under `query.cost`. From any
  // thread, where all calls exclude each other.
  virtual FirstTokenForecast Forecast(const ForecastQuery& query) const = 0;

  // The next step within `limit`: every running decode (one token each; the most important ones
  // where max_tokens is too few), then prefill chunks of running sequences, then admissions; a
  // prefill always gets ahead, whatever the time allows.
  // Allocates the blocks, preempts when they run out.
  // An empty plan means that nothing can run. With work present, no plan outstanding, no adoption
  // under way and a limit that is not decodes_only, the plan is never empty. Throws std::bad_alloc
  // with everything as Rollback leaves it.
  virtual StepPlan Plan(const StepLimit& limit, int64_t now_ns) = 0;

  // The step succeeded: advances num_computed_tokens, publishes full blocks to the prefix cache,
  // drops blocks that windows left behind. Call before sampled tokens are appended.
  virtual void Commit(const StepPlan& plan) = 0;
  // The step failed: sequences, tables and block references are as before Plan, except that evicted
  // cache stays evicted and preempted sequences stay waiting.
  virtual void Rollback(const StepPlan& plan) = 0;

  // Drops every unreferenced cached block.
  virtual void FlushPrefixCache() = 0;
  // Orders the eviction of the cached blocks that only this session has used, until its next
  // request gives blocks back. Unknown sessions are none of its business.
  virtual void HintSession(uint64_t session_id, SessionHint hint) = 0;

  // Pins at once; more are refused.
  static constexpr size_t kMaxPins = 1024;
  // How many tokens, in whole blocks, a pin of such a prefix holds. From any thread.
  // INVALID_ARGUMENT: not even one block; RESOURCE_EXHAUSTED: pinned, it would leave no room for a
  // request of the whole context; FAILED_PRECONDITION: there is no prefix cache.
  virtual absl::StatusOr<int32_t> PinnableTokens(int64_t num_tokens) const = 0;
  // Holds the prefix that a running sequence has computed to its end until UnpinPrefix.
  // RESOURCE_EXHAUSTED as above, together with the other pins. REQUIRES: as many tokens as
  // PinnableTokens said; an id that names no pin.
  virtual absl::Status PinPrefix(const Sequence& sequence, uint64_t pin_id) = 0;
  // Its blocks are cached ones again. Nothing for an id that names no pin.
  virtual void UnpinPrefix(uint64_t pin_id) = 0;

  // Writes the contents of block `index` of a prefix. False: they cannot be had.
  using FillBlock = absl::FunctionRef<bool(int32_t index, int group, BlockId block)>;
  // Takes blocks for an adoption's prefix, behind what is cached of it, and has `fill` write those
  // that a request would read: up to most_blocks a call, until it answers true. They are cached
  // then, most recent, or pinned. RESOURCE_EXHAUSTED: too many blocks are in use, also since the
  // last call, or as PinPrefix; DATA_LOSS: `fill` failed. Whatever fails, or throws, drops it.
  // Between plans.
  virtual absl::StatusOr<bool> Adopt(Adoption* adoption, FillBlock fill, int32_t most_blocks) = 0;
  // Gives its blocks back, unless it has ended or was never begun; nothing of them can be found.
  virtual void DropAdoption(Adoption* adoption) = 0;

  // For a second tier: who is told of evicted blocks (null: nobody), where a prefix lies, and the
  // first `most` that wait, in order; none when the first may not start now.
  virtual void SetEvictionListener(EvictionListener* listener) = 0;
  virtual PrefixPlace PlaceOf(const Sequence& sequence) const = 0;
  virtual std::vector<Sequence*> NextToStart(const StepLimit& limit, size_t most) = 0;

  virtual SchedulerCounters counters() const = 0;
  // Running and waiting sequences in scheduling order.
  virtual std::vector<const Sequence*> Running() const = 0;
  virtual std::vector<const Sequence*> Waiting() const = 0;
  // INTERNAL with what is wrong unless free + held + cached = total in each group, each block's
  // references equal the tables that name it, and no table holds a block twice.
  virtual absl::Status CheckInvariants() const = 0;
};

}  // namespace llm
