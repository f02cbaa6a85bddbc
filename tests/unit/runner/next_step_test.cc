// The step behind one that is on the device: when it can be told, and what it may be taken for.
#include "src/runner/next_step.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/runner/batch_builder.h"

namespace llm {
namespace {

using testing::ElementsAre;

constexpr int kBlockSize = 16;

class NextStepTest : public testing::Test {
 protected:
  NextStepTest() : made_(MakeBuilder(&made_memory_)), wanted_(MakeBuilder(&wanted_memory_)) {
    for (Sequence* one : {&first_, &second_, &third_}) {
      one->request.prompt = {1, 2, 3};
      one->request.stop.max_new_tokens = 50;
      one->tokens.resize(20);
      std::iota(one->tokens.begin(), one->tokens.end(), 100);
      one->arrival_index = ++num_sequences_;
    }
    first_.block_tables = {{7, 2}, {kNullBlock, 5}};  // behind the window
    second_.block_tables = {{3, 9}, {0, 1}};
    third_.block_tables = {{1, 4}, {8, 6}};
    plan_.chunks = {{&first_, 19, 1, 1}, {&second_, 0, 20, 1}, {&third_, 19, 1, 1}};
    queued_.num_rows = 3;
    queued_.draw_of_row = {-1, 0, -1};
    second_.request.sampling.temperature = 1;
  }

  static BatchShape Shape() {
    return {.max_tokens = 32,
            .max_sequences = 4,
            .max_logit_rows = 4,
            .max_context = 64,
            .block_size = kBlockSize,
            .groups = {{.window = 0, .layers = {0}}, {.window = 3, .layers = {1}}},
            .num_blocks = {10, 10}};
  }
  static BatchBuilder MakeBuilder(std::vector<std::byte>* memory) {
    memory->resize(BatchBuilder::ArrayBytes(Shape()) + 64);
    const auto address = reinterpret_cast<uintptr_t>(memory->data());
    Arena arena(memory->data() + (64 - address % 64) % 64);
    return BatchBuilder(Shape(), &arena);
  }

  // The tokens that the device has drawn for the three; the host appends them.
  void End(int32_t first, int32_t second, int32_t third) {
    const std::vector<int32_t> argmax = {first, 55, third};
    const std::vector<TokenLogprob> drawn = {{second, 0.0f}};
    next_.SetTokens({argmax.data(), drawn.data(), 3, 1}, 1000);
    first_.tokens.push_back(first);
    second_.tokens.push_back(second);
    third_.tokens.push_back(third);
  }
  Batch Made() {
    const absl::StatusOr<Batch> batch = made_.Build(next_.plan(), nullptr, next_.pending());
    EXPECT_TRUE(batch.ok()) << batch.status();
    return batch.ok() ? *batch : Batch();
  }
  bool Serves(const std::vector<ScheduledChunk>& chunks, const Batch& made) {
    StepPlan plan;
    plan.chunks = chunks;
    const absl::StatusOr<Batch> wanted = wanted_.Build(plan);
    EXPECT_TRUE(wanted.ok()) << wanted.status();
    return wanted.ok() && next_.Serves(plan, *wanted, made, &rows_);
  }
  bool Follow() { return next_.Follow(plan_, queued_, std::vector<int32_t>{0, 1, 2}); }

  std::vector<std::byte> made_memory_, wanted_memory_;
  BatchBuilder made_, wanted_;
  uint64_t num_sequences_ = 0;
  Sequence first_, second_, third_;
  StepPlan plan_;
  QueuedStep queued_;
  NextStep next_{4, kBlockSize};
  std::vector<int32_t> rows_;
};

TEST_F(NextStepTest, EverySequenceGoesOnByTheTokenOfItsRow) {
  ASSERT_TRUE(Follow());
  ASSERT_EQ(next_.plan().chunks.size(), 3u);
  for (const ScheduledChunk& chunk : next_.plan().chunks) {
    EXPECT_EQ(chunk.begin, 20);
    EXPECT_EQ(chunk.length, 1);
    EXPECT_EQ(chunk.num_logits, 1);
  }
  EXPECT_THAT(next_.pending(), ElementsAre(PendingArgmax(0), PendingDraw(0), PendingArgmax(2)));
  EXPECT_THAT(Made().token_ids, ElementsAre(PendingArgmax(0), PendingDraw(0), PendingArgmax(2)));
}

// Those of a step that had begun itself lie in other rows than its chunks say.
TEST_F(NextStepTest, RowsAreThoseOfTheDevice) {
  queued_.draw_of_row = {-1, -1, -1, 2};
  plan_.chunks.resize(2);
  ASSERT_TRUE(next_.Follow(plan_, queued_, std::vector<int32_t>{2, 3}));
  EXPECT_THAT(next_.pending(), ElementsAre(PendingArgmax(2), PendingDraw(2)));
}

TEST_F(NextStepTest, WhoeverEndsByLengthIsLeftOut) {
  first_.request.stop.max_new_tokens = 18;  // 17 are there, and this step gives the last
  ASSERT_TRUE(Follow());
  ASSERT_EQ(next_.plan().chunks.size(), 2u);
  EXPECT_EQ(next_.plan().chunks[0].sequence, &second_);
  second_.request.stop.max_new_tokens = third_.request.stop.max_new_tokens = 18;
  EXPECT_FALSE(Follow());
}

TEST_F(NextStepTest, PenaltiesAndRowsOfTheHostWaitForTheToken) {
  first_.request.sampling.presence_penalty = 0.5f;
  EXPECT_FALSE(Follow());
  first_.request.sampling.presence_penalty = 0;
  EXPECT_TRUE(Follow());
  queued_.draw_of_row[1] = -1;
  EXPECT_FALSE(Follow());
}

TEST_F(NextStepTest, ThePlanThatWasForetoldIsServed) {
  ASSERT_TRUE(Follow());
  const Batch made = Made();
  End(11, 22, 33);
  EXPECT_TRUE(Serves({{&first_, 20, 1, 1}, {&second_, 20, 1, 1}, {&third_, 20, 1, 1}}, made));
  EXPECT_THAT(rows_, ElementsAre(0, 1, 2));
  EXPECT_TRUE(Serves({{&third_, 20, 1, 1}, {&first_, 20, 1, 1}}, made));
  EXPECT_THAT(rows_, ElementsAre(2, 0));
}

TEST_F(NextStepTest, APlanThatAsksForAnythingElseIsNot) {
  ASSERT_TRUE(Follow());
  const Batch made = Made();
  End(11, 22, 33);
  const std::vector<ScheduledChunk> foretold = {{&first_, 20, 1, 1}, {&second_, 20, 1, 1}};
  ASSERT_TRUE(Serves(foretold, made));

  Sequence stranger = first_;
  EXPECT_FALSE(Serves({{&stranger, 20, 1, 1}}, made));
  EXPECT_FALSE(Serves({{&first_, 19, 1, 1}}, made));  // once more
  EXPECT_FALSE(Serves({{&first_, 19, 2, 1}}, made));
  EXPECT_FALSE(Serves({{&first_, 20, 1, 0}}, made));
  EXPECT_FALSE(Serves({{&first_, 20, 1, 0, 1}}, made));

  first_.tokens.back() = 12;  // the host knows better
  EXPECT_FALSE(Serves(foretold, made));
  first_.tokens.back() = 11;
  second_.block_tables[0][0] = 5;  // it came back into other blocks
  EXPECT_FALSE(Serves(foretold, made));
  second_.block_tables[0] = {3, 5};
  EXPECT_FALSE(Serves(foretold, made));
  second_.block_tables[0] = {3, 9};
  second_.block_tables[1][1] = 2;
  EXPECT_FALSE(Serves(foretold, made));
  second_.block_tables[1] = {kNullBlock, 1};  // what the window has left behind is not asked for
  EXPECT_TRUE(Serves(foretold, made));
  second_.request.long_rope = true;
  EXPECT_FALSE(Serves(foretold, made));
  second_.request.long_rope = false;
  first_.arrival_index = 9;  // another request at the same address
  EXPECT_FALSE(Serves(foretold, made));
  first_.arrival_index = 1;
  EXPECT_TRUE(Serves(foretold, made));
}

TEST_F(NextStepTest, BlocksThatAreCopiedFirstAreNotThere) {
  ASSERT_TRUE(Follow());
  const Batch made = Made();
  End(11, 22, 33);
  StepPlan plan;
  plan.chunks = {{&first_, 20, 1, 1}};
  plan.block_copies = {{.group = 0, .source = 1, .destination = 6, .tokens = 3}};
  EXPECT_FALSE(next_.Serves(plan, *wanted_.Build(plan), made, &rows_));
}

}  // namespace
}  // namespace llm
