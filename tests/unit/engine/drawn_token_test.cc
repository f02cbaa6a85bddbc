// What the device drew is taken as it is, or says why there is nothing to take.
#include "src/engine/drawn_token.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace llm {
namespace {

using testing::HasSubstr;

class DrawnTokenTest : public testing::Test {
 protected:
  absl::StatusOr<SampledToken> Take(size_t index, int32_t num_logprobs) {
    StepLogits logits;
    logits.vocab_size = 10;
    logits.drawn = drawn_.data();
    logits.drawn_top = top_.data();
    logits.max_drawn_top = 2;
    return DrawnToken(logits, index, num_logprobs);
  }

  std::vector<TokenLogprob> drawn_ = {{3, -1.0f}, {7, -2.0f}};
  std::vector<TokenLogprob> top_ = {{3, -1.0f}, {4, -1.5f}, {8, -0.5f}, {7, -2.0f}};
};

TEST_F(DrawnTokenTest, HasTheLogprobsThatItsRequestAsksFor) {
  const auto token = Take(1, 1);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->id, 7);
  EXPECT_EQ(token->logprob, -2.0f);
  ASSERT_EQ(token->top.size(), 1u);
  EXPECT_EQ(token->top[0].id, 8);
  for (const int32_t none : {-1, 0}) EXPECT_TRUE(Take(1, none)->top.empty());
  EXPECT_EQ(Take(0, 20)->top.size(), 2u) << "the device names no more";
}

TEST_F(DrawnTokenTest, FailsWithTheWordsOfTheHostsSampler) {
  drawn_ = {{kLogitsNotFinite, 0}, {kNothingToDraw, 0}};
  EXPECT_EQ(Take(0, 0).status().message(), "logits are not finite");
  EXPECT_EQ(Take(1, 0).status().message(), "bias and bans leave no token to draw");
}

TEST_F(DrawnTokenTest, AnIdOutsideTheVocabularyIsABugThatStaysInTheRequest) {
  drawn_[0].id = 10;
  EXPECT_THAT(std::string(Take(0, 0).status().message()), HasSubstr("drew id 10"));
  drawn_[0].id = 3;
  top_[1].id = -5;
  EXPECT_EQ(Take(0, 2).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace llm
