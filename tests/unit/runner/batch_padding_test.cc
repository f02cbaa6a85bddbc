// Steps of decodes filled up to a graph's shape: the added rows see one stored key and store none.
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/kv_layout.h"
#include "src/runner/batch_builder.h"

namespace llm {
namespace {

using testing::Each;
using testing::ElementsAre;

class BatchPaddingTest : public testing::Test {
 protected:
  BatchPaddingTest() {
    const BatchShape shape = {.max_tokens = 4,
                              .max_sequences = 4,
                              .max_logit_rows = 4,
                              .max_context = 90,
                              .block_size = 16,
                              .groups = {{.window = 0, .layers = {0}}},
                              .num_blocks = {10}};
    memory_.resize(BatchBuilder::ArrayBytes(shape));
    Arena arena(memory_.data());
    builder_ = std::make_unique<BatchBuilder>(shape, &arena);
    sequence_.tokens.resize(40);
    std::iota(sequence_.tokens.begin(), sequence_.tokens.end(), 100);
    sequence_.block_tables = {{7, 2, 5}};
    plan_.chunks = {{&sequence_, 34, 1, 1}, {&sequence_, 17, 1, 1}};
  }

  std::vector<std::byte> memory_;
  std::unique_ptr<BatchBuilder> builder_;
  Sequence sequence_;
  StepPlan plan_;
};

TEST_F(BatchPaddingTest, AddsRowsThatStoreNothing) {
  const BatchPadding padding = {.rows = 4, .max_blocks = 6};
  const absl::StatusOr<Batch> batch = builder_->Build(plan_, &padding);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->token_ids, ElementsAre(134, 117, 134, 134));
  EXPECT_THAT(batch->positions, ElementsAre(34, 17, 0, 0));
  EXPECT_THAT(batch->query_start, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(batch->context_lens, ElementsAre(35, 18, 1, 1));
  EXPECT_THAT(batch->logit_rows, ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(batch->hidden_rows.empty());
  const GroupBatch& group = batch->groups[0];
  EXPECT_THAT(group.slot_mapping, ElementsAre(5 * 16 + 2, 2 * 16 + 1, kNoSlot, kNoSlot));
  EXPECT_EQ(group.max_blocks, 6);
  ASSERT_EQ(group.block_table.size(), 24u);
  EXPECT_THAT(group.block_table.subspan(6, 2), ElementsAre(7, 2));
  EXPECT_EQ(group.block_table[12], 5);  // where the first row stores its key
  EXPECT_EQ(group.block_table[18], 5);
}

TEST_F(BatchPaddingTest, ArraysKeepTheirPlaces) {
  const BatchPadding padding = {.rows = 4, .max_blocks = 6};
  const Batch first = *builder_->Build(plan_, &padding);
  plan_.chunks.pop_back();
  const Batch second = *builder_->Build(plan_, &padding);
  EXPECT_EQ(first.token_ids, second.token_ids);
  EXPECT_EQ(first.token_ids.data(), second.token_ids.data());
  EXPECT_EQ(first.context_lens.data(), second.context_lens.data());
  EXPECT_EQ(first.groups[0].block_table.data(), second.groups[0].block_table.data());
}

TEST_F(BatchPaddingTest, ContextsAreLongestForAsLongAsTheWorkLasts) {
  const BatchPadding padding = {.rows = 4, .max_blocks = 4};
  const Batch batch = *builder_->Build(plan_, &padding);
  const absl::Status status = builder_->WithLongestContexts(batch, [&] {
    EXPECT_THAT(batch.context_lens, Each(64));
    EXPECT_THAT(batch.groups[0].block_table, Each(testing::AllOf(testing::Ge(0), testing::Lt(10))));
    return absl::InternalError("as the work says");
  });
  EXPECT_EQ(status.message(), "as the work says");
  EXPECT_THAT(batch.context_lens, ElementsAre(35, 18, 1, 1));
  const BatchPadding widest = {.rows = 2, .max_blocks = 6};
  const Batch whole = *builder_->Build(plan_, &widest);
  ASSERT_TRUE(builder_
                  ->WithLongestContexts(whole,
                                        [&] {
                                          EXPECT_THAT(whole.context_lens, Each(90));
                                          return absl::OkStatus();
                                        })
                  .ok());
}

TEST_F(BatchPaddingTest, RefusesWhatDoesNotFit) {
  const auto code = [&](BatchPadding padding) {
    return builder_->Build(plan_, &padding).status().code();
  };
  EXPECT_EQ(code({.rows = 1, .max_blocks = 6}), absl::StatusCode::kInternal);
  EXPECT_EQ(code({.rows = 5, .max_blocks = 6}), absl::StatusCode::kInternal);
  EXPECT_EQ(code({.rows = 4, .max_blocks = 2}), absl::StatusCode::kInternal);
  EXPECT_EQ(code({.rows = 4, .max_blocks = 7}), absl::StatusCode::kInternal);
  EXPECT_EQ(code({.rows = 2, .max_blocks = 3}), absl::StatusCode::kOk);
  plan_.chunks[1].num_logits = 0;
  EXPECT_EQ(code({.rows = 4, .max_blocks = 6}), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace llm
