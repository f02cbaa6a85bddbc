// Expected lengths of outputs.
#include "src/scheduler/length_predictor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace llm {
namespace {

TEST(LengthPredictorTest, ExpectsAnythingUpToTheMostBeforeItKnowsLengths) {
  LengthPredictor lengths;
  lengths.Add(7);
  for (int i = 0; i < 7; ++i) lengths.Note(7, 5);
  EXPECT_EQ(lengths.Predict(7, 0, 0.0, 101), 1);
  EXPECT_EQ(lengths.Predict(7, 0, 0.5, 101), 51);
  EXPECT_EQ(lengths.Predict(7, 100, 0.9, 101), 101);
  EXPECT_EQ(lengths.Predict(8, 0, 0.5, 101), 51) << "a class that nobody added";
}

TEST(LengthPredictorTest, TakesTheLengthAtTheRanksPlaceAmongTheLongerOnes) {
  LengthPredictor lengths;
  lengths.Add(0);
  for (int length = 10; length <= 100; length += 10) lengths.Note(0, length);
  EXPECT_EQ(lengths.Predict(0, 0, 0.0, 1000), 10);
  EXPECT_EQ(lengths.Predict(0, 0, 0.99, 1000), 100);
  EXPECT_EQ(lengths.Predict(0, 50, 0.0, 1000), 60) << "50 tokens are there and it goes on";
  EXPECT_EQ(lengths.Predict(0, 50, 0.99, 70), 70) << "no more than it may";
}

TEST(LengthPredictorTest, ALongerOneThanAllBeforeMayEndAnywhere) {
  LengthPredictor lengths;
  lengths.Add(0);
  for (int i = 0; i < 20; ++i) lengths.Note(0, 10);
  EXPECT_EQ(lengths.Predict(0, 10, 0.5, 111), 61);
}

TEST(LengthPredictorTest, EvenRanksGiveTheMeanWithoutBias) {
  LengthPredictor lengths;
  lengths.Add(0);
  std::mt19937 random(3);
  std::vector<int32_t> seen;
  for (size_t i = 0; i < LengthPredictor::kLengths; ++i) {
    seen.push_back(1 + static_cast<int32_t>(random() % 1000));
    lengths.Note(0, seen.back());
  }
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += lengths.Predict(0, 0, i / 1000.0, 5000);
  const double mean = std::accumulate(seen.begin(), seen.end(), 0.0) / double(seen.size());
  EXPECT_NEAR(sum / 1000, mean, 0.01 * mean);
}

TEST(LengthPredictorTest, ForgetsAllButTheLast512) {
  LengthPredictor lengths;
  lengths.Add(0);
  for (int i = 0; i < 1000; ++i) lengths.Note(0, 10 + i % 7);
  for (size_t i = 0; i < LengthPredictor::kLengths; ++i) lengths.Note(0, 90);
  EXPECT_EQ(lengths.Predict(0, 0, 0.0, 1000), 90);
}

TEST(LengthPredictorTest, ClassesKnowNothingOfEachOtherUntilThereAreTooMany) {
  LengthPredictor lengths;
  for (uint32_t id = 0; id < LengthPredictor::kMaxClasses; ++id) {
    lengths.Add(id);
    for (int i = 0; i < 8; ++i) lengths.Note(id, 10 + static_cast<int32_t>(id));
  }
  EXPECT_EQ(lengths.Predict(3, 0, 0.5, 1000), 13);
  lengths.Add(1000);
  lengths.Note(1000, 500);
  EXPECT_EQ(lengths.Predict(2000, 0, 0.99, 1000), 500) << "the last class stands for all others";
}

}  // namespace
}  // namespace llm
