// Arithmetic of the tools, on values that were worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "samples/eval/choice_file.h"
#include "samples/eval/compare.h"
#include "samples/top/prometheus.h"

namespace {

llm_score_row Row(const float* logits, size_t size) {
  llm_score_row row = {};
  row.logits = logits;
  row.num_logits = size;
  return row;
}

TEST(DivergenceTest, IsTheKullbackLeiblerDivergenceOfOtherFromBase) {
  // Half and half against a quarter and three quarters: ln(2) / 2 + ln(2 / 3) / 2. The logits are
  // shifted, which changes no distribution.
  const float base[] = {5, 5};
  const float other[] = {-100, -100 + std::log(3.0f)};
  eval::BaseRows rows;
  rows.Begin(2, 2);
  rows.Add(Row(base, 2));
  rows.Add(Row(other, 2));
  eval::Divergence divergence;
  divergence.Add(rows, 0, Row(other, 2));
  divergence.Add(rows, 1, Row(other, 2));
  EXPECT_NEAR(divergence.MeanKl(), 0.14384103622589045 / 2, 1e-6);
  EXPECT_NEAR(divergence.QuantileKl(1), 0.14384103622589045, 1e-6);
  EXPECT_EQ(divergence.QuantileKl(0), 0);
  EXPECT_EQ(divergence.Top1Agreement(), 0.5);
}

TEST(NllDifferenceTest, AndPerplexityTakeTheirErrorsFromTheSpreadOfTheWindows) {
  eval::Perplexity perplexity, other;
  perplexity.AddWindow({-1, -2});
  EXPECT_TRUE(std::isnan(perplexity.StandardError()));
  perplexity.AddWindow({-3, -4});
  other.AddWindow({-1.5f, -2.5f});
  other.AddWindow({-3.5f, -4.5f});
  EXPECT_EQ(perplexity.count(), 4u);
  EXPECT_DOUBLE_EQ(perplexity.MeanNll(), 2.5);
  // Window means 1.5 and 3.5: deviation sqrt(2), over sqrt(2) windows.
  EXPECT_DOUBLE_EQ(perplexity.StandardError(), std::exp(2.5));
  EXPECT_DOUBLE_EQ(eval::Difference(perplexity, other).mean, 0.5);
  EXPECT_DOUBLE_EQ(eval::Difference(perplexity, other).standard_error, 0);
}

TEST(ChoiceFileTest, ReadsEscapesAndPassesOverOtherMembers) {
  const auto questions = eval::ParseChoices(
      "{\"subject\": \"a\", \"n\": -1.5e3, \"tags\": [\"x\"], \"question\": "
      "\"\\\"q\\\"\\n\\u00e9\\ud83d\\ude00\","
      " \"choices\": [\"one\", \"two\"], \"answer\": 1}\n\n"
      "{\"answer\":0,\"choices\":[\"a\",\"b\",\"c\"],\"question\":\"\"}",
      "a.jsonl");
  ASSERT_EQ(questions.size(), 2u);
  EXPECT_EQ(questions[0].question, "\"q\"\n\u00e9\U0001f600");
  EXPECT_EQ(questions[0].choices, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(questions[0].answer, 1u);
  EXPECT_EQ(questions[1].choices.size(), 3u);
}

TEST(PrometheusTest, QuantilesAreLinearWithinABucket) {
  top::Snapshot snapshot;
  ASSERT_EQ(snapshot.Parse("t_bucket{le=\"1\"} 0\nt_bucket{le=\"3\"} 4\nt_bucket{le=\"+Inf\"} 5\n"),
            "");
  const top::Histogram histogram = snapshot.OfHistogram("t");
  EXPECT_EQ(histogram.Count(), 5);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.4), 2);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.99), 3);  // nothing says how far beyond
  EXPECT_EQ(top::Difference(histogram, histogram).Count(), 0);
  EXPECT_TRUE(std::isnan(top::Difference(histogram, histogram).Quantile(0.5)));
}

TEST(PrometheusTest, LinesThatAreNoSamplesAreRefused) {
  top::Snapshot snapshot;
  EXPECT_EQ(snapshot.Parse("# a comment\n\na{b=\"c\\\"\\n\"} 1e3\n"), "");
  EXPECT_EQ(snapshot.Label("b"), "c\"\n");
  for (const char* line :
       {"a", "a ", "a{b=\"c\" 1", "a{b=\"c} 1", "a{b} 1", "a one", "{} 1", "a{", "a{}"})
    EXPECT_NE(snapshot.Parse(line), "") << line;
}

}  // namespace
