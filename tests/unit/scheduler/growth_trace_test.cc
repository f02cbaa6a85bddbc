// Admission by expected growth over recorded lengths of conversations, beside an oracle that knows
// each output's length. Numbers alone: no model, no time.
#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "src/scheduler/scheduler.h"

namespace llm {
namespace {

constexpr int32_t kBlockSize = 16;
constexpr int32_t kContext = 2048;

struct Lengths {
  int32_t prompt = 0;
  int32_t output = 0;
};

struct Outcome {
  double occupancy = 0;    // held blocks over all, average over the steps with a queue
  double preemptions = 0;  // a request
  double waste = 0;        // allocated slots without a token, over the allocated ones
  double recomputed = 0;   // tokens, over the prompts'
  int64_t steps = 0;
};

// Lengths are scaled so that the longest fit the context.
std::vector<Lengths> ReadLengths() {
  std::ifstream file(std::string(INLAY_SHARED_DATA) + "/../traces/sharegpt4_turns_lengths.csv");
  std::vector<Lengths> lengths;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    int conversation = 0;
    int turn = 0;
    Lengths one;
    if (std::sscanf(line.c_str(), "%d,%d,%d,%d", &conversation, &turn, &one.prompt, &one.output) !=
        4)
      continue;
    one.prompt = std::clamp(one.prompt / 4, 1, kContext / 2);
    one.output = std::clamp(one.output / 4, 1, kContext / 2 - 1);
    lengths.push_back(one);
  }
  std::shuffle(lengths.begin(), lengths.end(), std::mt19937(5));
  return lengths;
}

class Replay {
 public:
  // `oracle`: each request says how long its output will be.
  Replay(const std::vector<Lengths>& lengths, AdmissionPolicy admission, bool oracle,
         VictimPolicy victims)
      : lengths_(lengths), oracle_(oracle) {
    double mean = 0;
    for (const Lengths& one : lengths) mean += one.prompt + one.output;
    mean /= static_cast<double>(lengths.size());
    num_blocks_ = static_cast<int>(100 * mean / kBlockSize);
    SchedulerOptions options;
    options.max_sequences = 4096;
    options.max_context_tokens = kContext;
    options.block_size = kBlockSize;
    options.groups = {{0, {}}};
    options.num_blocks = {num_blocks_};
    options.admission = admission;
    options.victims = victims;
    options.prefix_cache = false;
    scheduler_ = std::move(Scheduler::Create(options)).value();
  }

  Outcome Run() {
    Outcome outcome;
    int64_t with_queue = 0;
    while (next_ < lengths_.size() || !open_.empty()) {
      while (next_ < lengths_.size() && scheduler_->counters().waiting_current < 64) Submit();
      Step();
      ++outcome.steps;
      // The start, when nothing is known yet, and the end, when nobody waits, are not the policy's.
      if (next_ < lengths_.size() / 10 || next_ >= lengths_.size()) continue;
      ++with_queue;
      const double held = scheduler_->counters().held_blocks_current;
      outcome.occupancy += held / num_blocks_;
      outcome.waste += Waste(held);
    }
    const SchedulerCounters counters = scheduler_->counters();
    outcome.occupancy /= static_cast<double>(with_queue);
    outcome.waste /= static_cast<double>(with_queue);
    outcome.preemptions =
        static_cast<double>(counters.preemptions_total) / static_cast<double>(lengths_.size());
    double prompts = 0;
    for (const Lengths& one : lengths_) prompts += one.prompt;
    outcome.recomputed = static_cast<double>(counters.recomputed_tokens_total) / prompts;
    return outcome;
  }

 private:
  struct Open {
    Sequence sequence;
    int32_t output = 0;
  };

  void Submit() {
    const Lengths& one = lengths_[next_++];
    auto open = std::make_unique<Open>();
    open->output = one.output;
    open->sequence.request.id = next_;
    open->sequence.request.prompt.assign(static_cast<size_t>(one.prompt), 1);
    open->sequence.tokens = open->sequence.request.prompt;
    open->sequence.request.stop.max_new_tokens = oracle_ ? one.output : kContext - one.prompt;
    scheduler_->Add(&open->sequence);
    open_.push_back(std::move(open));
  }

  void Step() {
    const StepPlan plan = scheduler_->Plan({.max_tokens = 4096}, ++now_ns_);
    scheduler_->Commit(plan);
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.num_logits > 0) chunk.sequence->tokens.push_back(1);
    }
    for (size_t i = 0; i < open_.size();) {
      Open& open = *open_[i];
      if (open.sequence.num_generated_tokens() < open.output) {
        ++i;
        continue;
      }
      scheduler_->NoteEnd(open.sequence);
      scheduler_->Remove(&open.sequence);
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  double Waste(double held) const {
    if (held == 0) return 0;
    double tokens = 0;
    for (const Sequence* sequence : scheduler_->Running()) tokens += sequence->num_computed_tokens;
    return 1 - tokens / (held * kBlockSize);
  }

  const std::vector<Lengths>& lengths_;
  const bool oracle_;
  int num_blocks_ = 0;
  std::unique_ptr<Scheduler> scheduler_;
  std::deque<std::unique_ptr<Open>> open_;
  size_t next_ = 0;
  int64_t now_ns_ = 0;
};

class GrowthTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    lengths_ = ReadLengths();
    if (lengths_.empty()) GTEST_SKIP() << "no sharegpt4_turns_lengths.csv beside the checkout";
  }

  Outcome Run(const char* name, AdmissionPolicy admission, bool oracle = false,
              VictimPolicy victims = VictimPolicy::kLeastWork) const {
    const Outcome outcome = Replay(lengths_, admission, oracle, victims).Run();
    std::printf(
        "%-12s occupancy %.3f, preemptions %.4f a request, recomputed %.4f, waste %.3f, %lld "
        "steps\n",
        name, outcome.occupancy, outcome.preemptions, outcome.recomputed, outcome.waste,
        static_cast<long long>(outcome.steps));
    return outcome;
  }

  std::vector<Lengths> lengths_;
};

TEST_F(GrowthTraceTest, PredictedGrowthFillsThePoolAlmostAsAnOracleDoes) {
  const Outcome oracle = Run("oracle", AdmissionPolicy::kReserve, true);
  const Outcome predicted = Run("predict", AdmissionPolicy::kPredict);
  EXPECT_GE(predicted.occupancy, 0.95 * oracle.occupancy);
  EXPECT_LT(predicted.preemptions, 0.02);
  EXPECT_LT(predicted.waste, 0.04);
}

TEST_F(GrowthTraceTest, ReservingTheMostNeverPreemptsAndRunsHalfEmpty) {
  const Outcome reserved = Run("reserve", AdmissionPolicy::kReserve);
  EXPECT_EQ(reserved.preemptions, 0);
  EXPECT_LT(reserved.occupancy, 0.5);
}

// Short questions with long answers: most of what a sequence becomes is not there when it starts.
TEST_F(GrowthTraceTest, LongOutputsAreForeseenWhereTheGreedyRecompute) {
  for (Lengths& one : lengths_) std::swap(one.prompt, one.output);
  const Outcome oracle = Run("oracle", AdmissionPolicy::kReserve, true);
  const Outcome predicted = Run("predict", AdmissionPolicy::kPredict);
  const Outcome greedy = Run("greedy", AdmissionPolicy::kGreedy);
  EXPECT_GE(predicted.occupancy, 0.95 * oracle.occupancy);
  EXPECT_LE(predicted.steps, oracle.steps * 101 / 100);
  EXPECT_LT(predicted.preemptions, greedy.preemptions / 5);
  EXPECT_LT(predicted.recomputed, greedy.recomputed / 5);
}

// Where many are preempted: what the victims had computed is computed again.
TEST_F(GrowthTraceTest, VictimsThatLoseLeastRecomputeLessThanTheNewest) {
  for (Lengths& one : lengths_) std::swap(one.prompt, one.output);
  const Outcome least = Run("least work", AdmissionPolicy::kGreedy);
  const Outcome newest = Run("newest", AdmissionPolicy::kGreedy, false, VictimPolicy::kNewest);
  EXPECT_LT(least.recomputed, newest.recomputed);
}

}  // namespace
}  // namespace llm
