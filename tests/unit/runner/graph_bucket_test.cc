// Which steps share a graph, and what a runner keeps for them.
#include "src/runner/graph_bucket.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace llm {
namespace {

constexpr GraphShape kShape = {
    .max_rows = 100, .max_context = 3000, .block_size = 16, .num_layers = 2};

class GraphBucketTest : public testing::Test {
 protected:
  static StepPlan Decodes(Sequence* sequence, size_t rows, int32_t context) {
    StepPlan plan;
    plan.chunks.assign(rows, {.sequence = sequence, .begin = 0, .length = 1, .num_logits = 1});
    plan.chunks.back().begin = context - 1;
    return plan;
  }
  int RowsOf(size_t rows) {
    const auto bucket = BucketOf(Decodes(&sequence_, rows, 9), kShape);
    return bucket ? bucket->padding.rows : -1;
  }
  int64_t BlocksOf(int32_t context) {
    const auto bucket = BucketOf(Decodes(&sequence_, 3, context), kShape);
    return bucket ? bucket->padding.max_blocks : -1;
  }

  Sequence sequence_;
};

TEST_F(GraphBucketTest, RowsAreFilledUpByAQuarterAtMostBeyondTheFirstEight) {
  EXPECT_EQ(RowsOf(1), 1);
  EXPECT_EQ(RowsOf(3), 4);
  EXPECT_EQ(RowsOf(5), 8);
  EXPECT_EQ(RowsOf(17), 24);
  EXPECT_EQ(RowsOf(65), 80);
  EXPECT_EQ(RowsOf(97), 100);  // no step has more
  EXPECT_EQ(RowsOf(101), -1);
  for (int rows = 9; rows <= 100; ++rows) {
    EXPECT_GE(RowsOf(static_cast<size_t>(rows)), rows);
    EXPECT_LE(RowsOf(static_cast<size_t>(rows)) - rows, std::max(7, rows / 4));
  }
}

TEST_F(GraphBucketTest, ContextsDoubleFromASplitOn) {
  EXPECT_EQ(BlocksOf(1), 32);
  EXPECT_EQ(BlocksOf(512), 32);
  EXPECT_EQ(BlocksOf(513), 64);
  EXPECT_EQ(BlocksOf(1025), 128);
  EXPECT_EQ(BlocksOf(2049), 188);  // of the longest context there can be
  EXPECT_EQ(BlocksOf(3001), -1);
}

TEST_F(GraphBucketTest, StepsThatDoMoreThanDecodeHaveNone) {
  const auto with = [&](auto change) {
    StepPlan plan = Decodes(&sequence_, 2, 5);
    change(&plan.chunks[1]);
    return BucketOf(plan, kShape).has_value();
  };
  EXPECT_TRUE(with([](ScheduledChunk*) {}));
  EXPECT_FALSE(with([](ScheduledChunk* chunk) { chunk->length = 2; }));
  EXPECT_FALSE(with([](ScheduledChunk* chunk) { chunk->num_logits = 0; }));
  EXPECT_FALSE(with([](ScheduledChunk* chunk) { chunk->num_hidden = 1; }));
  EXPECT_FALSE(BucketOf(StepPlan(), kShape).has_value());
}

TEST_F(GraphBucketTest, RowsOfDifferentFrequenciesHaveNone) {
  Sequence turns_long;
  turns_long.request.long_rope = true;
  StepPlan plan = Decodes(&sequence_, 2, 5);
  plan.chunks[0].sequence = &turns_long;
  EXPECT_FALSE(BucketOf(plan, kShape).has_value());
  plan.chunks[1].sequence = &turns_long;
  const auto bucket = BucketOf(plan, kShape);
  ASSERT_TRUE(bucket.has_value());
  EXPECT_FALSE(*bucket == *BucketOf(Decodes(&sequence_, 2, 5), kShape));
}

TEST_F(GraphBucketTest, KeepsEachNumberOfRowsWithTwoLengths) {
  std::set<int> rows;
  for (size_t i = 1; i <= 100; ++i) rows.insert(RowsOf(i));
  EXPECT_EQ(MaxGraphs(kShape), static_cast<int>(2 * rows.size()));
  EXPECT_EQ(MaxGraphs({.max_rows = 4, .max_context = 512}), 3);
  EXPECT_EQ(MaxGraphs({.max_rows = 5000, .max_context = 4096}), 32);
  EXPECT_EQ(GraphBytes({.max_rows = 4, .max_context = 512, .num_layers = 2}),
            size_t{3} * (2 * 24 + 24) * 4096);
}

}  // namespace
}  // namespace llm
