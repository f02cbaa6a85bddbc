// Thousands of random runs: lengths, arrivals, cancels, priorities, tiny pools, groups, failed
// steps. After each call the invariants hold, every step reads its own tokens, and every sequence
// comes to its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "src/scheduler/scheduler.h"
#include "tests/unit/scheduler/slot_oracle.h"

namespace llm {
namespace {

class RandomRun {
 public:
  explicit RandomRun(uint32_t seed) : random_(seed), options_(RandomOptions()), oracle_(options_) {
    scheduler_ = std::move(Scheduler::Create(options_)).value();
  }

  void Go() {
    const size_t num_sequences = 1 + Below(20);
    const size_t failure_rate = Below(2) * Below(30);  // percent of steps
    for (int step = 0; submitted_ < num_sequences || !open_.empty(); ++step) {
      ASSERT_LT(step, 20000) << "the run does not end";
      while (submitted_ < num_sequences && (open_.empty() || Below(3) == 0)) Submit();
      if (Below(40) == 0 && !open_.empty()) Finish(open_[Below(open_.size())]);
      if (Below(100) == 0) scheduler_->FlushPrefixCache();
      CheckInvariants();
      Step(1 + static_cast<int32_t>(Below(Below(4) == 0 ? 3 : 40)), Below(100) < failure_rate);
      if (testing::Test::HasFatalFailure()) return;
    }
    const SchedulerCounters counters = scheduler_->counters();
    EXPECT_EQ(counters.held_blocks_current, 0);
    EXPECT_EQ(counters.running_current + counters.waiting_current, 0);
    totals.preemptions_total += counters.preemptions_total;
    totals.rehit_tokens_total += counters.rehit_tokens_total;
    totals.cached_tokens_total += counters.cached_tokens_total;
    totals.evicted_blocks_total += counters.evicted_blocks_total;
  }

  static SchedulerCounters totals;  // that the runs did meet what they are for
  static uint64_t num_looks_ahead;

 private:
  // What Rollback must bring back.
  struct State {
    SequenceStatus status;
    int32_t computed;
    std::vector<BlockTable> tables;
    int64_t first_scheduled_ns;
  };

  static constexpr size_t kTokenNs = 50;  // what a token of a step takes

  size_t Below(size_t limit) { return random_() % limit; }

  SchedulerOptions RandomOptions() {
    SchedulerOptions options;
    options.max_sequences = 1 + static_cast<int32_t>(Below(8));
    options.max_context_tokens = 8 + static_cast<int32_t>(Below(120));
    options.block_size = 1 << (1 + Below(3));
    const size_t shape = Below(4);
    if (shape != 3) options.groups.push_back({0, {}});
    for (size_t i = 0; i < shape; ++i)
      options.groups.push_back({1 + static_cast<int>(Below(30)), {}});
    for (const KvGroupSpec& group : options.groups) {
      // From the least that one context needs to plenty.
      const int all = (options.max_context_tokens - 1) / options.block_size + 1;
      const int window = (group.window - 1) / options.block_size + 2;
      const int least = group.window == 0 ? all : std::min(all, window);
      options.num_blocks.push_back(least + static_cast<int>(Below(Below(2) == 0 ? 4 : 80)));
    }
    options.policy = static_cast<SchedulingPolicy>(Below(3));
    options.admission = static_cast<AdmissionPolicy>(Below(3));
    options.prefix_cache = Below(4) != 0;
    options.max_long_sequences = static_cast<int32_t>(Below(3));
    options.long_tokens = 1 + static_cast<int32_t>(Below(60));
    options.hash_key[0] = random_();
    return options;
  }

  // Few different tokens and starts that others had, so that prefixes meet and part in the middle
  // of blocks.
  std::vector<int32_t> RandomPrompt() {
    std::vector<int32_t> prompt;
    if (!histories_.empty() && Below(3) != 0) {
      prompt = histories_[Below(histories_.size())];
      if (Below(3) != 0) prompt.resize(Below(prompt.size() + 1));
    }
    const size_t most = static_cast<size_t>(options_.max_context_tokens) / (Below(2) == 0 ? 2 : 8);
    const size_t more = 1 + Below(most);
    for (size_t i = 0; i < more; ++i) prompt.push_back(static_cast<int32_t>(Below(2)));
    prompt.resize(std::min(prompt.size(), static_cast<size_t>(options_.max_context_tokens - 1)));
    return prompt;
  }

  void Submit() {
    sequences_.push_back(std::make_unique<Sequence>());
    Sequence* sequence = sequences_.back().get();
    Request& request = sequence->request;
    request.id = ++submitted_;
    request.prompt = RandomPrompt();
    request.cache_salt = std::vector<std::string>{"", "s", "t"}[Below(3)];
    request.adapter_id = Below(6) == 0;
    request.priority = static_cast<int32_t>(Below(3));
    request.use_prefix_cache = Below(8) != 0;
    request.request_class = static_cast<uint32_t>(Below(3));
    request.arrival_ns = now_ns_;
    if (Below(3) == 0) {
      request.token_gap_target_ns = 1 + static_cast<int64_t>(Below(40 * kTokenNs));
    }
    if (Below(3) == 0) {
      request.first_token_deadline_ns = now_ns_ + static_cast<int64_t>(Below(1000));
    }
    const int64_t room = options_.max_context_tokens - static_cast<int64_t>(request.prompt.size());
    request.stop.max_new_tokens = 1 + static_cast<int32_t>(Below(static_cast<size_t>(room)));
    sequence->tokens = request.prompt;
    const absl::Status fits =
        scheduler_->CheckFits(sequence->num_tokens(), request.stop.max_new_tokens);
    ASSERT_TRUE(fits.ok()) << fits;
    scheduler_->Add(sequence);
    open_.push_back(sequence);
  }

  void Finish(Sequence* sequence) {
    histories_.push_back(sequence->tokens);
    scheduler_->Remove(sequence);
    ASSERT_EQ(sequence->status, SequenceStatus::kFinished);
    open_.erase(std::find(open_.begin(), open_.end(), sequence));
    CheckInvariants();
  }

  void CheckInvariants() {
    const absl::Status status = scheduler_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
  }

  void CheckPlan(const StepPlan& plan, int32_t max_tokens,
                 const std::map<Sequence*, State>& before) {
    ASSERT_EQ(plan.chunks.empty(), open_.empty());
    ASSERT_LE(plan.num_tokens, max_tokens);
    int32_t sum = 0;
    int last_kind = 0;  // 0 decode, 1 prefill, 2 admission
    std::set<Sequence*> planned;
    for (const ScheduledChunk& chunk : plan.chunks) {
      sum += chunk.length;
      ASSERT_TRUE(planned.insert(chunk.sequence).second);
      ASSERT_EQ(chunk.begin, chunk.sequence->num_computed_tokens);
      const bool reaches_end = chunk.begin + chunk.length == chunk.sequence->num_tokens();
      ASSERT_EQ(chunk.num_logits, reaches_end ? 1 : 0);
      const State& state = before.at(chunk.sequence);
      const bool was_decode = state.computed + 1 == chunk.sequence->num_tokens();
      const int kind = state.status == SequenceStatus::kWaiting ? 2 : was_decode ? 0 : 1;
      ASSERT_GE(kind, last_kind) << "decodes, then prefill chunks, then admissions";
      last_kind = kind;
    }
    ASSERT_EQ(sum, plan.num_tokens);
    ASSERT_LE(scheduler_->Running().size(), static_cast<size_t>(options_.max_sequences));
    // Every decode that still runs is in the plan, unless the budget ran out.
    for (const auto& [sequence, state] : before) {
      const bool decode =
          state.status == SequenceStatus::kRunning && state.computed + 1 == sequence->num_tokens();
      if (!decode || sequence->status != SequenceStatus::kRunning || planned.count(sequence) > 0)
        continue;
      // A tile of it may be a prefill's that needs less.
      ASSERT_GT(plan.num_tokens, max_tokens - 8) << "a decode was left out";
    }
  }

  // Everybody's next token has its slot already.
  void CheckLookAhead(const StepPlan& plan, const StepLimit& limit) {
    if (!plan.looks_ahead) return;
    ++num_looks_ahead;
    ASSERT_TRUE(limit.look_ahead);
    ASSERT_EQ(plan.chunks.size(), scheduler_->Running().size());
    for (const ScheduledChunk& chunk : plan.chunks) {
      const Sequence& sequence = *chunk.sequence;
      ASSERT_EQ(chunk.begin + chunk.length, sequence.num_tokens());
      if (EndsWithNextToken(sequence)) continue;
      for (const BlockTable& table : sequence.block_tables) {
        const auto block = static_cast<size_t>(sequence.num_tokens() / options_.block_size);
        ASSERT_LT(block, table.size());
        ASSERT_NE(table[block], kNullBlock);
      }
    }
  }

  void CheckRolledBack(const std::map<Sequence*, State>& before) {
    for (const auto& [sequence, state] : before) {
      const bool preempted =
          state.status == SequenceStatus::kRunning && sequence->status == SequenceStatus::kWaiting;
      if (preempted) continue;
      ASSERT_EQ(sequence->status, state.status);
      ASSERT_EQ(sequence->num_computed_tokens, state.computed);
      ASSERT_EQ(sequence->block_tables, state.tables);
      ASSERT_EQ(sequence->stats.first_scheduled_ns, state.first_scheduled_ns);
    }
  }

  void Step(int32_t max_tokens, bool fails) {
    std::map<Sequence*, State> before;
    for (Sequence* sequence : open_) {
      before[sequence] = {sequence->status, sequence->num_computed_tokens, sequence->block_tables,
                          sequence->stats.first_scheduled_ns};
    }
    StepLimit limit = {.max_tokens = max_tokens};
    if (timed_) {
      limit.cost = &cost_;
      limit.step_ns = static_cast<int64_t>(Below(2) * Below(60 * kTokenNs));
    }
    limit.look_ahead = Below(2) == 0;
    limit.decodes_only = Below(2) == 0;
    StepPlan plan = scheduler_->Plan(limit, ++now_ns_);
    CheckInvariants();
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (!limit.decodes_only) break;
      ASSERT_EQ(before.at(chunk.sequence).status, SequenceStatus::kRunning);
      ASSERT_EQ(chunk.begin + 1, chunk.sequence->num_tokens());
    }
    if (plan.chunks.empty() && limit.decodes_only) {
      limit.decodes_only = false;
      plan = scheduler_->Plan(limit, ++now_ns_);
      CheckInvariants();
    }
    CheckPlan(plan, max_tokens, before);
    CheckLookAhead(plan, limit);
    if (testing::Test::HasFatalFailure()) return;
    if (fails) {
      oracle_.Fail(plan, &random_);
      scheduler_->Rollback(plan);
      CheckInvariants();
      CheckRolledBack(before);
      return;
    }
    const std::string wrong = oracle_.Execute(plan, scheduler_->Running());
    ASSERT_EQ(wrong, "");
    scheduler_->Commit(plan);
    cost_.Note(plan.work, static_cast<int64_t>(kTokenNs) * plan.num_tokens);
    CheckInvariants();
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.num_logits == 0) continue;
      Sequence* sequence = chunk.sequence;
      sequence->tokens.push_back(static_cast<int32_t>(Below(2)));
      if (sequence->num_generated_tokens() == sequence->request.stop.max_new_tokens) {
        scheduler_->NoteEnd(*sequence);
        Finish(sequence);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  std::mt19937 random_;
  const SchedulerOptions options_;
  SlotOracle oracle_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> open_;
  std::vector<std::vector<int32_t>> histories_;
  StepCostModel cost_;
  const bool timed_ = Below(2) == 0;
  size_t submitted_ = 0;
  int64_t now_ns_ = 0;
};

SchedulerCounters RandomRun::totals;
uint64_t RandomRun::num_looks_ahead = 0;

void RunSeeds(uint32_t first, uint32_t count) {
  RandomRun::totals = SchedulerCounters();
  RandomRun::num_looks_ahead = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun(seed).Go();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(RandomRun::totals.preemptions_total, count / 10);
  EXPECT_GT(RandomRun::totals.rehit_tokens_total, count);
  EXPECT_GT(RandomRun::totals.cached_tokens_total, count);
  EXPECT_GT(RandomRun::totals.evicted_blocks_total, count);
  EXPECT_GT(RandomRun::num_looks_ahead, count);
}

// Four tests, so that ctest runs them side by side.
TEST(SchedulerPropertyTest, KeepsEveryRuleInRandomRunsOfSeedsFrom0) { RunSeeds(0, 1000); }
TEST(SchedulerPropertyTest, KeepsEveryRuleInRandomRunsOfSeedsFrom1000) { RunSeeds(1000, 1000); }
TEST(SchedulerPropertyTest, KeepsEveryRuleInRandomRunsOfSeedsFrom2000) { RunSeeds(2000, 1000); }
TEST(SchedulerPropertyTest, KeepsEveryRuleInRandomRunsOfSeedsFrom3000) { RunSeeds(3000, 1000); }

}  // namespace
}  // namespace llm
