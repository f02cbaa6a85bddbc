// The drawn token: greedy, in distribution, at extremes, and its log-probabilities.
#include "src/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

namespace llm {
namespace {

LogitsRow RowOf(const std::vector<float>& logits) {
  LogitsRow row;
  row.logits = logits;
  const auto max = std::max_element(logits.begin(), logits.end());
  row.argmax = static_cast<int32_t>(max - logits.begin());
  row.max = *max;
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - row.max);
  row.log_sum_exp = static_cast<float>(row.max + std::log(sum));
  return row;
}

SamplingParams Params(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 5;
  return params;
}

SampledToken Draw(const std::vector<float>& logits, const SamplingParams& params,
                  int64_t position = 0) {
  const auto token = Sample(RowOf(logits), params, position);
  EXPECT_TRUE(token.ok()) << token.status();
  return token.value();
}

TEST(SamplerTest, TakesTheMaximumWhenGreedy) {
  const SampledToken token = Draw({1, 4, 2}, Params(0));
  EXPECT_EQ(token.id, 1);
  EXPECT_NEAR(token.logprob, 4 - std::log(std::exp(1) + std::exp(4) + std::exp(2)), 1e-6);
  EXPECT_TRUE(token.top.empty());
}

TEST(SamplerTest, TakesTheMaximumWithoutTheRow) {
  const std::vector<float> logits = {1, 4, 2};
  const SampledToken with_row = Draw(logits, Params(0));
  LogitsRow row = RowOf(logits);
  row.logits = {};
  const auto token = Sample(row, Params(0), 0);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->id, with_row.id);
  EXPECT_EQ(token->logprob, with_row.logprob);
}

TEST(SamplerTest, ReportsLogitsThatAreNotFinite) {
  const std::vector<float> logits = {NAN, 1};
  LogitsRow row;
  row.logits = logits;
  row.argmax = -1;
  const auto token = Sample(row, Params(1), 0);
  EXPECT_EQ(token.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(token.status().message(), "logits are not finite");
}

TEST(SamplerTest, IsAFunctionOfSeedAndPosition) {
  const std::vector<float> logits(500, 1.0f);
  std::set<int32_t> ids;
  for (int64_t position = 0; position < 50; ++position) {
    const int32_t id = Draw(logits, Params(1), position).id;
    EXPECT_EQ(id, Draw(logits, Params(1), position).id);
    ids.insert(id);
  }
  EXPECT_GT(ids.size(), 30u);
}

TEST(SamplerTest, DrawsInProportionToTheProbabilities) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.2f), std::log(0.3f),
                                     std::log(0.4f)};
  constexpr int kDraws = 40000;
  std::vector<int> counts(4, 0);
  for (int64_t i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(Draw(logits, Params(1), i).id)];
  for (size_t id = 0; id < 4; ++id) {
    const double p = 0.1 * static_cast<double>(id + 1);
    EXPECT_NEAR(counts[id], kDraws * p,
                4 * std::sqrt(kDraws * p * (1 - p)));  // four standard deviations
  }
}

TEST(SamplerTest, AppliesTemperatureBeforeTopP) {
  // At temperature 1 the first id alone has mass 0.67; at 2 it has 0.5 and the second is needed for
  // 0.6.
  const std::vector<float> logits = {2 * std::log(2.0f), 2 * std::log(1.0f), 2 * std::log(1.0f)};
  SamplingParams params = Params(1);
  params.top_p = 0.6f;
  std::set<int32_t> cold, warm;
  for (int64_t i = 0; i < 200; ++i) cold.insert(Draw(logits, params, i).id);
  params.temperature = 2;
  for (int64_t i = 0; i < 200; ++i) warm.insert(Draw(logits, params, i).id);
  EXPECT_EQ(cold, std::set<int32_t>{0});
  EXPECT_EQ(warm, (std::set<int32_t>{0, 1}));
}

TEST(SamplerTest, MeasuresTopPWithinTopK) {
  // Of the two that top-k keeps the first has mass 0.6, enough for 0.55; of all four it has 0.3,
  // not enough.
  const std::vector<float> logits = {std::log(0.3f), std::log(0.2f), std::log(0.25f - 0.06f),
                                     std::log(0.19f)};
  SamplingParams params = Params(1);
  params.top_k = 2;
  params.top_p = 0.55f;
  for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(Draw(logits, params, i).id, 0);
}

TEST(SamplerTest, NeverDrawsWhatTheFiltersLeaveOut) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(3000);
  for (float& logit : logits) logit = normal(random);
  SamplingParams params = Params(1.5f);
  params.top_k = 7;
  params.min_p = 0.05f;
  std::vector<float> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  const float least = std::max(sorted[6], sorted[0] + 1.5f * std::log(0.05f));
  for (int64_t i = 0; i < 500; ++i)
    EXPECT_GE(logits[static_cast<size_t>(Draw(logits, params, i).id)], least);
}

TEST(SamplerTest, SurvivesExtremeTemperaturesAndLogits) {
  const std::vector<float> logits = {-3e38f, 3e38f, -INFINITY, 1e-40f};
  for (float temperature : {1e-45f, 1e-38f, 1e-6f, 1.0f}) {
    EXPECT_EQ(Draw(logits, Params(temperature)).id, 1) << temperature;
  }
  SamplingParams params = Params(3e38f);
  params.top_p = 0.9f;
  params.min_p = 0.1f;
  EXPECT_NE(Draw(logits, params).id, 2);
}

TEST(SamplerTest, StaysInTheRowWhereTheMaximumIsNot) {
  const std::vector<float> logits(300, -9.0f);
  LogitsRow row = RowOf(logits);
  row.max = 1e30f;
  SamplingParams params = Params(1);
  for (const float top_p : {1.0f, 0.5f}) {
    params.top_p = top_p;
    const auto token = Sample(row, params, 0);
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_GE(token->id, 0);
    EXPECT_LT(token->id, 300);
  }
}

TEST(SamplerTest, DrawsNoMaskedId) {
  std::vector<float> logits(1000, -INFINITY);
  logits[777] = -5;
  logits[300] = -5;
  for (int64_t i = 0; i < 100; ++i) {
    const int32_t id = Draw(logits, Params(1), i).id;
    EXPECT_TRUE(id == 777 || id == 300) << id;
  }
}

TEST(SamplerTest, ListsTheMostLikelyWithTheLowerIdAtATie) {
  SamplingParams params = Params(0);
  params.num_logprobs = 3;
  const std::vector<float> logits = {1, 3, 2, 3, 2};
  const SampledToken token = Draw(logits, params);
  ASSERT_EQ(token.top.size(), 3u);
  EXPECT_EQ(token.top[0].id, 1);
  EXPECT_EQ(token.top[1].id, 3);
  EXPECT_EQ(token.top[2].id, 2);
  EXPECT_EQ(token.top[0].logprob, token.logprob);
  params.num_logprobs = 100;
  EXPECT_EQ(Draw(logits, params).top.size(), 5u);
}

TEST(SamplerTest, DoesNotLetTheFiltersChangeTheReportedLogprob) {
  SamplingParams params = Params(0.5f);
  params.top_k = 1;
  EXPECT_EQ(Draw({1, 2, 3}, params).logprob, Draw({1, 2, 3}, Params(0)).logprob);
}

}  // namespace
}  // namespace llm
