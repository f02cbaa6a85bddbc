// The scheduler's state and steps; each group of functions has its own file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/cache/block_manager.h"
#include "src/scheduler/layer_windows.h"
#include "src/scheduler/length_predictor.h"
#include "src/scheduler/scheduler.h"

namespace llm {

// What a step may take for the token gap that the sequence tolerates; 0: it names none.
int64_t GapAimNs(const Sequence& sequence);

class SchedulerImpl : public Scheduler {
 public:
  explicit SchedulerImpl(const SchedulerOptions& options);

  // scheduler.cc
  void Add(Sequence* sequence) override;
  void Remove(Sequence* sequence) override;
  void NoteEnd(const Sequence& sequence) override;
  StepPlan Plan(const StepLimit& limit, int64_t now_ns) override;
  void FlushPrefixCache() override { blocks_.Flush(); }
  void HintSession(uint64_t session_id, SessionHint hint) override {
    blocks_.Hint(session_id, hint);
  }
  SchedulerCounters counters() const override;
  std::vector<const Sequence*> Running() const override;
  std::vector<const Sequence*> Waiting() const override;
  // admission.cc
  absl::Status CheckFits(int64_t num_prompt_tokens, int64_t max_new_tokens) const override;
  // pinning.cc
  absl::StatusOr<int32_t> PinnableTokens(int64_t num_tokens) const override;
  absl::Status PinPrefix(const Sequence& sequence, uint64_t pin_id) override;
  void UnpinPrefix(uint64_t pin_id) override;
  // adoption.cc
  absl::StatusOr<bool> Adopt(Adoption* adoption, FillBlock fill, int32_t most_blocks) override;
  void DropAdoption(Adoption* adoption) override;
  void SetEvictionListener(EvictionListener* listener) override {
    blocks_.set_eviction_listener(listener);
  }
  PrefixPlace PlaceOf(const Sequence& sequence) const override;
  std::vector<Sequence*> NextToStart(const StepLimit& limit, size_t most) override;
  // forecast.cc
  FirstTokenForecast Forecast(const ForecastQuery& query) const override;
  // commit.cc
  void Commit(const StepPlan& plan) override;
  void Rollback(const StepPlan& plan) override;
  // invariants.cc
  absl::Status CheckInvariants() const override;

 private:
  static constexpr int32_t kTile =
      8;  // tokens that kernels take at once: shares of fewer waste them
  // Tokens that a step computes of a prefill at least: no target may stop it altogether. Enough to
  // fill the kernels' tiles, where a target asks for short steps, and to be worth reading the
  // weights where none does.
  static constexpr int32_t kLeastUnderTarget = 8;
  static constexpr int32_t kLeastTokens = 64;
  using Queue = std::vector<Sequence*>;  // most important first

  struct Pin {
    uint64_t id = 0;
    PrefixNodeId node = kNoPrefixNode;
  };

  // One Plan call's state.
  struct Step {
    StepPlan plan;
    StepLimit limit;
    int64_t now_ns = 0;
    bool preempted = false;
    int32_t budget() const { return limit.max_tokens - plan.num_tokens; }
  };

  // Whether `a` goes before `b`: a total order, by policy, then by arrival.
  bool MoreImportant(const Sequence& a, const Sequence& b) const;
  // The same for one that is not in a queue yet and would take `alone_ns` alone.
  bool GoesBefore(const Sequence& sequence, const Request& request, int64_t alone_ns) const;
  void Insert(Queue* queue, Sequence* sequence);
  void Erase(Queue* queue, Sequence* sequence);
  // Where it throws, Rollback of what is there undoes it.
  void FillPlan(Step* step);
  bool UsesPrefixCache(const Sequence& sequence) const {
    return blocks_.prefix_cache_enabled() && sequence.request.use_prefix_cache;
  }
  // Gives back blocks and prefix place; num_computed_tokens says how many of its tokens the blocks
  // really hold.
  void ReleaseBlocks(Sequence* sequence);

  // A sequence as GrowthFits sees it.
  struct Growth {
    int32_t remaining = 0;   // tokens that are still expected
    int32_t known = 0;       // tokens
    double variance = 0;     // of remaining
    int64_t held = 0;        // blocks
    int64_t given_back = 0;  // of these, at its end
  };

  // What a sequence begins with when it is admitted.
  struct Start {
    PrefixMatch match;                  // of the prefix cache
    const Sequence* sibling = nullptr;  // set: the first sibling_tokens tokens are its instead
    int32_t sibling_tokens = 0;
    bool waits = false;  // a running sibling computes them now
  };

  // admission.cc
  void AdmitWaiting(Step* step);
  bool NextMayStart(const Step& step, bool behind = false);
  bool CountsAsLong(int32_t num_tokens) const {
    return options_.max_long_sequences > 0 && num_tokens >= options_.long_tokens;
  }
  bool IsLong(const Sequence& sequence) const { return CountsAsLong(sequence.num_tokens()); }
  // Whether it waits for its prefix, or for a long one to end.
  bool HeldBack(const Sequence& sequence) const;
  bool MayAdmit(const Sequence& sequence, const Start& start, int32_t max_step_tokens);
  int64_t OutstandingBlocks(int group, int32_t max_step_tokens) const;
  PrefixMatch MatchPrefix(const Sequence& sequence) const;
  bool CanCopyPartial(const PrefixMatch& match) const;
  void TakeMatch(PrefixMatch match, Sequence* sequence, StepPlan* plan);

  // sharing.cc
  Start FindStart(const Sequence& sequence) const;
  void FindSibling(const std::vector<Sequence*>& siblings, Start* start) const;
  int32_t ShortenForSiblings(const Sequence& sequence, int32_t length) const;
  bool CanShare(const Sequence& sibling, int32_t num_tokens) const;
  std::vector<BlockManager::MatchUse> UseOf(const Start& start) const;
  void TakeStart(const Start& start, Sequence* sequence, StepPlan* plan);
  void TakeFromSibling(const Start& start, Sequence* sequence, StepPlan* plan);

  // chunking.cc
  int32_t KeptForPrefills(const Step& step);
  void ScheduleDecodes(Step* step);
  void SchedulePrefills(Step* step);
  int32_t LongestChunk(const Sequence& sequence) const;
  int32_t ChunkLength(const Sequence& sequence, const Step& step, int32_t share) const;
  int32_t FreeLogitRows(const StepPlan& plan) const;
  void RecordUndo(Sequence* sequence, bool admitted, StepPlan* plan) const;
  void AddChunk(Sequence* sequence, int32_t length, Step* step);

  // look_ahead.cc
  bool MayLookAhead(const Step& step);
  void LookAhead(Step* step);
  void CoverTokens(Sequence* sequence, int32_t num_tokens);

  // growth.cc
  int32_t ExpectedTokens(const Sequence& sequence, int32_t num_generated) const;
  double VarianceOf(const Sequence& sequence) const;
  bool GrowthFits(const Sequence& sequence, int group, int64_t matched_blocks, int64_t available);

  // forecast.cc
  struct Backlog;
  Backlog BacklogAhead(const Request* request, int64_t alone_ns) const;
  double ForecastChunk(const ForecastQuery& query, const Backlog& backlog,
                       const StepWork& own) const;
  StepWork WorkAhead(const Backlog& backlog, int32_t own_tokens, double chunk_tokens) const;
  double TakePlaces(const ForecastQuery& query, Backlog* backlog) const;
  int32_t CachedTokens(const Request& request) const;

  // step_time.cc
  // Both REQUIRE that all decodes of the step are planned.
  bool HasTime(const Sequence& sequence, const Step& step) const;
  int32_t LengthInTime(const Sequence& sequence, const Step& step, int32_t most) const;
  int32_t TokensInTime(const Sequence& sequence, const Step& step, int32_t most) const;

  // pinning.cc
  int64_t MaxPinnedBlocks(int group) const;
  absl::Status PinNode(PrefixNodeId node, const std::vector<BlockTable>& tables, uint64_t pin_id);
  static absl::Status NoPrefixRoom();

  // adoption.cc
  absl::Status CheckAdoption(int32_t num_tokens, int32_t num_taken) const;
  absl::Status BeginAdoption(Adoption* adoption);
  absl::StatusOr<bool> FinishAdoption(Adoption* adoption);

  // preemption.cc
  bool MakeRoom(Sequence* sequence, Step* step);
  Sequence* PickVictim(const Sequence& needy) const;
  void Preempt(Sequence* sequence, Step* step);

  // commit.cc
  void CountAdmission(Sequence* sequence);
  void FinishCopies(const StepPlan& plan);

  const SchedulerOptions options_;
  const LayerWindows windows_;
  BlockManager blocks_;
  Queue running_;
  Queue waiting_;
  uint64_t next_arrival_index_ = 1;
  LengthPredictor lengths_;
  std::vector<Growth> growth_;       // scratch
  std::vector<Sequence*> prefills_;  // scratch
  bool plan_outstanding_ = false;
  int64_t planned_at_ns_ = 0;     // the last plan
  bool looked_ahead_ = false;     // likewise
  bool blocked_by_room_ = false;  // the last plan left one waiting for want of blocks
  std::vector<BlockCopy>
      pinned_copies_;  // of the outstanding plan: their sources hold one reference each
  std::vector<Adoption*> adoptions_;  // under way
  std::vector<Pin> pins_;             // within the capacity reserved at the start
  SchedulerCounters counters_;
};

}  // namespace llm
