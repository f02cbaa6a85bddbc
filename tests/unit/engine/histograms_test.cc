// Buckets, edges and sums of the engine's histograms.
#include "src/engine/histograms.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace llm {
namespace {

TEST(HistogramsTest, EveryHistogramsEdgesRiseAndFit) {
  for (size_t i = 0; i < kNumHistograms; ++i) {
    const absl::Span<const uint64_t> edges = HistogramEdges(static_cast<HistogramId>(i));
    ASSERT_FALSE(edges.empty()) << i;
    EXPECT_LE(edges.size(), kMaxHistogramEdges) << i;
    EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end(), std::less_equal<>())) << i;
  }
}

TEST(HistogramsTest, AnEdgeBelongsToTheBucketBelowIt) {
  Histograms histograms;
  const HistogramId id = HistogramId::kStepTokens;
  for (const uint64_t value : {0, 1, 2, 8, 9, 16384, 16385}) histograms.Add(id, value);
  const Histogram& histogram = histograms.Of(id);
  EXPECT_EQ(histogram.buckets[0], 2u);   // 0, 1
  EXPECT_EQ(histogram.buckets[1], 2u);   // 2, 8
  EXPECT_EQ(histogram.buckets[2], 1u);   // 9
  EXPECT_EQ(histogram.buckets[12], 1u);  // 16384
  EXPECT_EQ(histogram.buckets[13], 1u);  // above all edges
  EXPECT_EQ(histogram.count, 7u);
  EXPECT_EQ(histogram.sum, 0u + 1 + 2 + 8 + 9 + 16384 + 16385);
}

TEST(HistogramsTest, ATimeThatRunsBackwardsCountsAsZero) {
  Histograms histograms;
  histograms.AddTime(HistogramId::kTtft, -5);
  EXPECT_EQ(histograms.Of(HistogramId::kTtft).buckets[0], 1u);
  EXPECT_EQ(histograms.Of(HistogramId::kTtft).sum, 0u);
}

}  // namespace
}  // namespace llm
