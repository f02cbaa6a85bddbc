// A plan becomes flat arrays; a plan that cannot be true becomes a status.
#include "src/runner/batch_builder.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace llm {
namespace {

using testing::ElementsAre;

class BatchBuilderTest : public testing::Test {
 protected:
  void SetUp() override {
    const BatchShape shape = {
        .max_tokens = 40,
        .max_sequences = 3,
        .max_logit_rows = 4,
        .max_context = 96,
        .block_size = 16,
        .groups = {{.window = 0, .layers = {1}}, {.window = 20, .layers = {0}}},
        .num_blocks = {10, 8}};
    Arena counting(nullptr);
    BatchBuilder(shape, &counting);
    memory_.resize(counting.peak_bytes());
    Arena arena(memory_.data());
    builder_ = std::make_unique<BatchBuilder>(shape, &arena);
    EXPECT_EQ(arena.peak_bytes(), counting.peak_bytes());
  }

  Sequence MakeSequence(int num_tokens, BlockTable full, BlockTable window) {
    Sequence sequence;
    sequence.tokens.resize(static_cast<size_t>(num_tokens));
    std::iota(sequence.tokens.begin(), sequence.tokens.end(), 100);
    sequence.block_tables = {std::move(full), std::move(window)};
    return sequence;
  }
  absl::Status BuildStatus(const ScheduledChunk& chunk) {
    StepPlan plan;
    plan.chunks = {chunk};
    return builder_->Build(plan).status();
  }

  std::vector<std::byte> memory_;
  std::unique_ptr<BatchBuilder> builder_;
};

TEST_F(BatchBuilderTest, FlattensADecodeAndAPrefillChunk) {
  Sequence decode = MakeSequence(18, {7, 2}, {3, 4});
  Sequence prefill = MakeSequence(5, {1}, {0});
  prefill.request.long_rope = true;
  StepPlan plan;
  plan.chunks = {{&decode, 17, 1, 1}, {&prefill, 0, 3, 0}};
  plan.num_tokens = 4;
  const absl::StatusOr<Batch> batch = builder_->Build(plan);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->token_ids, ElementsAre(117, 100, 101, 102));
  EXPECT_THAT(batch->positions, ElementsAre(17, 0, 1, 2));
  EXPECT_THAT(batch->query_start, ElementsAre(0, 1, 4));
  EXPECT_THAT(batch->context_lens, ElementsAre(18, 3));
  EXPECT_THAT(batch->rope_variants, ElementsAre(0, 1));
  EXPECT_THAT(batch->logit_rows, ElementsAre(0));
  ASSERT_EQ(batch->groups.size(), 2u);
  EXPECT_EQ(batch->groups[0].max_blocks, 2);  // of the longest context
  EXPECT_THAT(batch->groups[0].slot_mapping, ElementsAre(2 * 16 + 1, 16, 17, 18));
  EXPECT_THAT(batch->groups[1].slot_mapping, ElementsAre(4 * 16 + 1, 0, 1, 2));
  EXPECT_EQ(batch->groups[0].block_table[0], 7);
  EXPECT_EQ(batch->groups[0].block_table[1], 2);
  EXPECT_EQ(batch->groups[0].block_table[2], 1);
}

TEST_F(BatchBuilderTest, AsksForTheLastRowsOfAChunk) {
  Sequence sequence = MakeSequence(6, {1}, {1});
  StepPlan plan;
  plan.chunks = {{&sequence, 1, 5, 3}};
  const absl::StatusOr<Batch> batch = builder_->Build(plan);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->logit_rows, ElementsAre(2, 3, 4));
}

TEST_F(BatchBuilderTest, AnEmptyPlanIsAnEmptyBatch) {
  const absl::StatusOr<Batch> batch = builder_->Build({});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->token_ids.empty());
  EXPECT_THAT(batch->query_start, ElementsAre(0));
}

TEST_F(BatchBuilderTest, AllowsAWindowToHaveLeftBlocksBehind) {
  // The query at 40 sees keys from 21 on: block 0 of the window group is not read.
  Sequence sequence = MakeSequence(41, {1, 2, 3}, {kNullBlock, 2, 3});
  EXPECT_TRUE(BuildStatus({&sequence, 40, 1, 1}).ok());
}

TEST_F(BatchBuilderTest, RefusesABlockThatTheWindowStillNeeds) {
  // The query at 35 sees key 16, the first of block 1.
  Sequence sequence = MakeSequence(41, {1, 2, 3}, {kNullBlock, kNullBlock, 3});
  EXPECT_EQ(BuildStatus({&sequence, 35, 1, 1}).code(), absl::StatusCode::kInternal);
  // The query at 36 sees 17 on, still in block 1; one at 51 would not.
  EXPECT_EQ(BuildStatus({&sequence, 36, 1, 1}).code(), absl::StatusCode::kInternal);
}

TEST_F(BatchBuilderTest, RefusesATableThatIsTooShort) {
  Sequence sequence = MakeSequence(20, {1}, {1, 2});
  EXPECT_EQ(BuildStatus({&sequence, 0, 20, 1}).code(), absl::StatusCode::kInternal);
}

TEST_F(BatchBuilderTest, RefusesABlockOutsideThePool) {
  Sequence sequence = MakeSequence(5, {10}, {1});
  EXPECT_EQ(BuildStatus({&sequence, 0, 5, 1}).code(), absl::StatusCode::kInternal);
}

TEST_F(BatchBuilderTest, RefusesTokensThatASequenceDoesNotHave) {
  Sequence sequence = MakeSequence(5, {1}, {1});
  EXPECT_EQ(BuildStatus({&sequence, 0, 6, 1}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(BuildStatus({&sequence, -1, 2, 1}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(BuildStatus({&sequence, 0, 0, 0}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(BuildStatus({&sequence, 0, 2, 3}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(BuildStatus({nullptr, 0, 2, 1}).code(), absl::StatusCode::kInternal);
}

TEST_F(BatchBuilderTest, RefusesAStepBeyondWhatWasPlanned) {
  Sequence sequence = MakeSequence(64, {1, 2, 3, 4}, {1, 2, 3, 4});
  EXPECT_EQ(BuildStatus({&sequence, 0, 41, 1}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(BuildStatus({&sequence, 0, 40, 5}).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(BuildStatus({&sequence, 0, 40, 4}).ok());
  StepPlan plan;
  plan.chunks.assign(4, {&sequence, 0, 1, 0});
  EXPECT_EQ(builder_->Build(plan).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace llm
