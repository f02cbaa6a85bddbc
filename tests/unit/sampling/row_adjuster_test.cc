// Bias, penalties and bans on rows small enough to be worked out by hand.
#include "src/sampling/row_adjuster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace llm {
namespace {

class RowAdjusterTest : public testing::Test {
 protected:
  LogitsRow Original() const {
    LogitsRow row;
    row.logits = logits_;
    row.argmax = 0;
    row.max = 4.0f;
    row.log_sum_exp = 5.0f;
    return row;
  }
  LogitsRow Adjusted() { return adjuster_.Adjust(Original(), edits_.edits()); }
  std::vector<float> Applied(const SamplingParams& params, const std::vector<int32_t>& tokens,
                             int32_t num_prompt) {
    edits_.Begin();
    edits_.Apply(params, tokens, num_prompt);
    const LogitsRow row = Adjusted();
    return std::vector<float>(row.logits.begin(), row.logits.end());
  }

  const std::vector<float> logits_ = {4.0f, 2.0f, -2.0f, 0.0f};
  LogitEdits edits_{4};
  RowAdjuster adjuster_{4};
};

TEST_F(RowAdjusterTest, RepetitionCountsPromptAndOutputOnce) {
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  EXPECT_EQ(Applied(params, {0, 0, 2, 2}, 1), (std::vector<float>{2.0f, 2.0f, -4.0f, 0.0f}));
}

TEST_F(RowAdjusterTest, PresenceAndFrequencyCountTheOutputAlone) {
  SamplingParams params;
  params.presence_penalty = 1.0f;
  params.frequency_penalty = 0.5f;
  EXPECT_EQ(Applied(params, {1, 1, 0, 2, 2, 2}, 2), (std::vector<float>{2.5f, 2.0f, -4.5f, 0.0f}));
}

TEST_F(RowAdjusterTest, BiasComesBeforeThePenalties) {
  SamplingParams params;
  params.logit_bias = {{2, 6.0f}, {3, -1.0f}};
  params.repetition_penalty = 2.0f;
  EXPECT_EQ(Applied(params, {2, 3}, 1), (std::vector<float>{4.0f, 2.0f, 2.0f, -2.0f}));
}

TEST_F(RowAdjusterTest, AnIdHasOneEditWhateverConcernsIt) {
  SamplingParams params;
  params.logit_bias = {{1, 0.5f}, {1, 0.25f}};
  params.repetition_penalty = 2.0f;
  params.presence_penalty = 1.0f;
  EXPECT_EQ(Applied(params, {1, 1}, 1), (std::vector<float>{4.0f, 0.375f, -2.0f, 0.0f}));
  ASSERT_EQ(edits_.edits().size(), 1u);
}

TEST_F(RowAdjusterTest, LeavesNothingBehindForTheNextRow) {
  SamplingParams params;
  params.frequency_penalty = 1.0f;
  const std::vector<float> once = Applied(params, {0, 1, 1}, 0);
  EXPECT_EQ(Applied(params, {0, 1, 1}, 0), once);
  EXPECT_EQ(Applied(SamplingParams(), {0, 1, 1}, 0), logits_);
}

TEST_F(RowAdjusterTest, TheMaximumFollowsAndTheNormalizerStays) {
  edits_.Begin();
  edits_.Ban(std::vector<int32_t>{0});
  const LogitsRow row = Adjusted();
  EXPECT_EQ(row.argmax, 1);
  EXPECT_EQ(row.max, 2.0f);
  EXPECT_EQ(row.log_sum_exp, 5.0f);
  edits_.Ban(std::vector<int32_t>{1, 2, 3});
  EXPECT_EQ(Adjusted().argmax, -1) << "nothing is left";
}

TEST_F(RowAdjusterTest, ABadWordLosesItsLastTokenBehindTheOthers) {
  SamplingParams params;
  params.bad_words = {{1, 2, 0}, {3}};
  const auto banned = [&](const std::vector<int32_t>& output, size_t id) {
    edits_.Begin();
    edits_.BanBadWords(params, output);
    return std::isinf(Adjusted().logits[id]);
  };
  EXPECT_TRUE(banned({0, 1, 2}, 0));
  EXPECT_FALSE(banned({0, 1, 2}, 1));
  EXPECT_FALSE(banned({1, 2, 2}, 0));
  EXPECT_FALSE(banned({2}, 0)) << "shorter than the word";
  EXPECT_TRUE(banned({}, 3)) << "a word of one token is always banned";
  EXPECT_TRUE(AdjustsRow(params, 100));
}

TEST_F(RowAdjusterTest, OnlyWhatChangesARowNeedsOne) {
  SamplingParams params;
  EXPECT_FALSE(AdjustsRow(params, 0));
  params.min_new_tokens = 3;
  EXPECT_TRUE(AdjustsRow(params, 2));
  EXPECT_FALSE(AdjustsRow(params, 3));
  params.presence_penalty = -1.0f;
  EXPECT_TRUE(AdjustsRow(params, 3));
}

}  // namespace
}  // namespace llm
