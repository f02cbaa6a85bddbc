// Cuts against their definitions, computed by a full sort in double.
#include "src/sampling/logits_processors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace llm {
namespace {

std::vector<int> Kept(const std::vector<float>& logits, const Cut& cut) {
  std::vector<int> ids;
  CutFilter filter(cut);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (filter.Keeps(logits[i])) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

std::vector<int> Ranked(const std::vector<float>& logits) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return ids;
}

std::vector<int> FirstById(std::vector<int> ids, size_t count) {
  ids.resize(count);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Some rows are coarse, so that they are full of ties.
std::vector<float> RandomRow(std::mt19937* random, bool coarse) {
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> row(1 + (*random)() % 1200);
  for (float& logit : row) logit = coarse ? std::round(normal(*random)) : normal(*random);
  return row;
}

Weigher WeigherOf(const std::vector<float>& row, float temperature) {
  return Weigher{*std::max_element(row.begin(), row.end()), temperature};
}

TEST(CutTest, OrdersKeysLikeLogits) {
  const std::vector<float> ascending = {-INFINITY, -3e38f, -1,    -1e-40f, 0,
                                        1e-40f,    2,      3e38f, INFINITY};
  for (size_t i = 1; i < ascending.size(); ++i) {
    EXPECT_LT(OrderedKey(ascending[i - 1]), OrderedKey(ascending[i]));
  }
  EXPECT_EQ(OrderedKey(-0.0f), OrderedKey(0.0f));
}

TEST(CutTest, TopKKeepsTheLargestAndTheLowerIdAtATie) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const std::vector<float> row = RandomRow(&random, round % 2 == 0);
    const size_t k = 1 + random() % row.size();
    ASSERT_EQ(Kept(row, TopKCut(row, static_cast<int64_t>(k))), FirstById(Ranked(row), k)) << round;
  }
}

TEST(CutTest, TopPKeepsTheSmallestSetOfEnoughMass) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    const std::vector<float> row = RandomRow(&random, round % 2 == 0);
    const Weigher weigher = WeigherOf(row, round % 3 == 0 ? 1.0f : 0.7f);
    const size_t k = 1 + random() % row.size();
    const double p = 0.01 + 0.98 * static_cast<double>(random() % 1000) / 1000;
    const Cut top_k = TopKCut(row, static_cast<int64_t>(k));
    const std::vector<int> ranked = Ranked(row);
    double total = 0;
    const auto weight = [&](size_t rank) {
      return std::exp((static_cast<double>(row[static_cast<size_t>(ranked[rank])]) - weigher.max) /
                      weigher.temperature);
    };
    for (size_t rank = 0; rank < k; ++rank) total += weight(rank);
    double mass = 0;
    size_t count = 0;
    while (count < k && mass < p * total) mass += weight(count++);
    const size_t kept = Kept(row, TopPCut(row, top_k, weigher, p)).size();
    // Where the mass comes within the weights' rounding of p, one more or less is as right.
    const bool close = std::abs(mass - p * total) < 1e-6 * total ||
                       std::abs(mass - weight(count - 1) - p * total) < 1e-6 * total;
    if (!close) {
      ASSERT_EQ(kept, count) << round;
    }
    ASSERT_EQ(Kept(row, TopPCut(row, top_k, weigher, p)), FirstById(ranked, kept)) << round;
  }
}

TEST(CutTest, TopPKeepsOneAtLeast) {
  const std::vector<float> row = {1, 3, 3, 2};
  EXPECT_EQ(Kept(row, TopPCut(row, Cut(), WeigherOf(row, 1), 0.0)), std::vector<int>{1});
  EXPECT_EQ(Kept(row, TopPCut(row, Cut(), WeigherOf(row, 1), 1e-9)), std::vector<int>{1});
}

TEST(CutTest, MinPKeepsWhatIsLikelyEnoughBesideTheLikeliest) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> row = RandomRow(&random, false);
    const Weigher weigher = WeigherOf(row, 1.3f);
    const float min_p = 0.001f * static_cast<float>(1 + random() % 999);
    std::vector<int> expected;
    for (size_t i = 0; i < row.size(); ++i) {
      const double x = (static_cast<double>(row[i]) - weigher.max) / weigher.temperature;
      if (x >= std::log(static_cast<double>(min_p))) expected.push_back(static_cast<int>(i));
    }
    ASSERT_EQ(Kept(row, MinPCut(weigher, min_p)), expected) << round;
  }
  const std::vector<float> row = {1, 2, 2};
  EXPECT_EQ(Kept(row, MinPCut(WeigherOf(row, 1), 1.0f)), (std::vector<int>{1, 2}));
}

TEST(WeigherTest, IsAccurateAndTheSameInBlocksAndAlone) {
  std::vector<float> logits(kVocabBlock), weights(kVocabBlock);
  for (size_t i = 0; i < kVocabBlock; ++i) logits[i] = -0.37f * static_cast<float>(i);
  const Weigher weigher{0, 1};
  WeighBlock(logits.data(), weigher, weights.data());
  for (size_t i = 0; i < kVocabBlock; ++i) {
    EXPECT_EQ(weights[i], weigher(logits[i]));
    const double exact = logits[i] > -87 ? std::exp(static_cast<double>(logits[i])) : 0;
    EXPECT_NEAR(weights[i], exact, 3e-7 * exact);
  }
}

}  // namespace
}  // namespace llm
