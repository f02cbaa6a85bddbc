// Rows that the device draws from: what they are told, and which stay the host's.
#include "src/runner/draw_builder.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace llm {
namespace {

using testing::ElementsAre;

constexpr int kVocab = 40;  // ten edits are as many bytes as a row

class DrawBuilderTest : public testing::Test {
 protected:
  StepDraws Build(const std::vector<ScheduledChunk>& chunks) {
    StepPlan plan;
    plan.chunks = chunks;
    return builder_.Build(plan);
  }
  static Sequence Drawing(std::vector<int32_t> tokens) {
    Sequence sequence;
    sequence.request.prompt = {1, 2};
    sequence.tokens = std::move(tokens);
    sequence.request.sampling.temperature = 0.5f;
    return sequence;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 16);
  Arena arena_{memory_.data()};
  DrawBuilder builder_{{.max_sequences = 3, .max_logit_rows = 8, .vocab_size = kVocab}, &arena_};
};

TEST_F(DrawBuilderTest, ARowIsToldWhatItsRequestAsksFor) {
  Sequence sequence = Drawing({1, 2, 3});
  SamplingParams& params = sequence.request.sampling;
  params.seed = 77;
  params.top_k = 5;
  params.top_p = 0.75f;
  params.min_p = 0.25f;
  params.num_logprobs = 4;
  const StepDraws draws = Build({{&sequence, 2, 1, 1}});
  ASSERT_EQ(draws.rows.size(), 1u);
  const RowDraw& draw = draws.rows[0];
  EXPECT_EQ(draw.seed, 77u);
  EXPECT_EQ(draw.position, 3);
  EXPECT_EQ(draw.temperature, 0.5f);
  EXPECT_EQ(draw.top_k, 5);
  EXPECT_EQ(draw.top_p, 0.75f);
  EXPECT_EQ(draw.log_min_p, std::log(0.25f));
  EXPECT_EQ(draw.num_top, 4);
  EXPECT_EQ(draws.max_top, 4);
  EXPECT_EQ(draw.edits_end, draw.edits_begin);
}

TEST_F(DrawBuilderTest, RowsOfTheBestTokenAndOfScoresAreNotDrawn) {
  Sequence greedy = Drawing({1, 2}), drawn = Drawing({1, 2}), scored = Drawing({1, 2});
  greedy.request.sampling.temperature = 0;
  scored.score_begin = 1;
  const StepDraws draws =
      Build({{&greedy, 1, 1, 1}, {&scored, 1, 1, 1}, {&greedy, 0, 1, 0}, {&drawn, 1, 1, 1}});
  EXPECT_THAT(draws.of_row, ElementsAre(-1, -1, 0));
  ASSERT_EQ(draws.rows.size(), 1u);
  EXPECT_EQ(draws.rows[0].row, 2);
  EXPECT_EQ(draws.rows[0].log_min_p, -INFINITY);
  EXPECT_TRUE(draws.has(2));
  EXPECT_FALSE(draws.has(0));
  EXPECT_FALSE(draws.has(9));
}

TEST_F(DrawBuilderTest, EditsLieSideBySideAndAreCollectedAnew) {
  Sequence first = Drawing({1, 2, 3}), second = Drawing({1, 2, 5});
  first.request.sampling.repetition_penalty = 2;
  second.request.sampling.logit_bias = {{7, 1.0f}};
  second.request.sampling.min_new_tokens = 2;
  second.request.stop.end_ids = {0};
  for (int round = 0; round < 2; ++round) {
    const StepDraws draws = Build({{&first, 2, 1, 1}, {&second, 2, 1, 1}});
    ASSERT_EQ(draws.rows.size(), 2u);
    EXPECT_EQ(draws.rows[0].edits_begin, 0);
    EXPECT_EQ(draws.rows[0].edits_end, 3);
    EXPECT_EQ(draws.rows[1].edits_begin, 3);
    EXPECT_EQ(draws.rows[1].edits_end, 5);
    ASSERT_EQ(draws.edits.size(), 5u);
    EXPECT_EQ(draws.edits[2].id, 3);
    EXPECT_EQ(draws.edits[2].repetition, 2);
    EXPECT_EQ(draws.edits[3].bias, 1);
    EXPECT_EQ(draws.edits[4].bias, -INFINITY);
  }
}

TEST_F(DrawBuilderTest, ARowOfMoreEditsThanItsOwnBytesIsTheHosts) {
  Sequence few = Drawing({1, 2}), many = Drawing({1, 2});
  few.request.sampling.repetition_penalty = many.request.sampling.repetition_penalty = 2;
  for (int32_t id = 3; id < 11; ++id) few.tokens.push_back(id);
  for (int32_t id = 3; id < 12; ++id) many.tokens.push_back(id);
  const StepDraws draws = Build({{&few, 9, 1, 1}, {&many, 10, 1, 1}, {&few, 9, 1, 1}});
  EXPECT_THAT(draws.of_row, ElementsAre(0, -1, 1));
  EXPECT_EQ(draws.edits.size(), 20u);
}

TEST(DrawShapeTest, EditsOfAStepAreBounded) {
  EXPECT_EQ((DrawShape{.max_sequences = 3, .max_logit_rows = 8, .vocab_size = kVocab}.max_edits()),
            30);
  EXPECT_EQ(
      (DrawShape{.max_sequences = 256, .max_logit_rows = 256, .vocab_size = 262144}.max_edits()),
      65536);
}

}  // namespace
}  // namespace llm
