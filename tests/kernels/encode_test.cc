// Blocks that EncodeRow writes, decoded again: how far they are from the weights, and from the
// least error that there is (tests/data/make_fit_golden.py).
#include "kernels/quant/encode.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

std::vector<float> RandomRow(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> row(static_cast<size_t>(count));
  for (float& x : row) {  // a sum of three uniform ones: a bell, the same with every library
    x = 0;
    for (int i = 0; i < 3; ++i) x += static_cast<float>(random() % 4096) / 4096.0f - 0.5f;
    x *= 0.04f;
  }
  return row;
}

std::vector<char> Encoded(const Quantization& to, const std::vector<float>& row) {
  const auto cols = static_cast<int64_t>(row.size());
  std::vector<char> blocks(static_cast<size_t>(RowBytes(GetWeightFormat(to.format), cols)));
  EncodeRow(to, row.data(), cols, blocks.data());
  return blocks;
}

std::vector<float> RoundTrip(const Quantization& to, const std::vector<float>& row) {
  const std::vector<char> blocks = Encoded(to, row);
  std::vector<float> decoded(row.size());
  GetWeightFormat(to.format).decode(blocks.data(), static_cast<int64_t>(row.size()),
                                    decoded.data());
  return decoded;
}

double ErrorOf(const std::vector<float>& row, const std::vector<float>& decoded) {
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double error = double{decoded[i]} - double{row[i]};
    sum += error * error;
  }
  return sum;
}

constexpr Quantization kInt8 = {WeightFormat::kQ8_0, 32};
constexpr Quantization kInt4 = {WeightFormat::kQ4_0, 32};
constexpr Quantization kInt4Asym = {WeightFormat::kQ4_1, 32};
constexpr Quantization kFp8 = {WeightFormat::kF8_E4M3, 0};

// The errors of 24 groups as parts of the least ones: the mean and the worst.
struct Excess {
  double mean = 0, worst = 0;
};
Excess ExcessOf(const Quantization& to, const char* golden_error) {
  std::ifstream file(INLAY_TEST_DATA "/quant/fit_golden.json");
  const nlohmann::json groups = nlohmann::json::parse(file);
  Excess excess;
  for (const nlohmann::json& group : groups) {
    const auto row = group["weights"].get<std::vector<float>>();
    const double part = ErrorOf(row, RoundTrip(to, row)) / group[golden_error].get<double>() - 1;
    excess.mean += part / static_cast<double>(groups.size());
    excess.worst = std::max(excess.worst, part);
  }
  return excess;
}

TEST(EncodeTest, Int4ScalesAreWithinThreePercentOfTheLeastError) {
  const Excess excess = ExcessOf(kInt4, "scale_error");
  EXPECT_LT(excess.mean, 0.01);
  EXPECT_LT(excess.worst, 0.03);
}

TEST(EncodeTest, Int4ScalesWithMinimaAreWithinTwoPercentOfTheLeastErrorOnAverage) {
  const Excess excess = ExcessOf(kInt4Asym, "affine_error");
  EXPECT_LT(excess.mean, 0.02);
  EXPECT_LT(excess.worst, 0.1);
}

// Uniform rounding to steps of largest / 127 errs by 1 / sqrt(12) of a step.
TEST(EncodeTest, Int8ErrsByNoMoreThanRoundingToTheLargestWeightDoes) {
  for (const int64_t group : {32, 64, 128, 0}) {
    const std::vector<float> row = RandomRow(704, 1);
    const std::vector<float> decoded = RoundTrip({WeightFormat::kQ8_0, group}, row);
    const size_t step = group == 0 ? row.size() : static_cast<size_t>(group);
    double plain = 0;
    for (size_t begin = 0; begin < row.size(); begin += step) {
      const size_t end = std::min(row.size(), begin + step);
      float largest = 0;
      for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(row[i]));
      for (size_t i = begin; i < end; ++i) {
        const double scale = double{largest} / 127;
        const double error = std::nearbyint(double{row[i]} / scale) * scale - double{row[i]};
        plain += error * error;
      }
    }
    EXPECT_LE(ErrorOf(row, decoded), plain) << "group " << group;
  }
}

TEST(EncodeTest, Fp8ErrsByNoMoreThanScalingTheLargestWeightTo448Does) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const std::vector<float> row = RandomRow(256, seed);
    float largest = 0;
    for (const float x : row) largest = std::max(largest, std::fabs(x));
    std::vector<float> plain = row;
    for (float& x : plain) x = F8E4M3ToF32(F32ToF8E4M3(x / (largest / 448))) * (largest / 448);
    EXPECT_LE(ErrorOf(row, RoundTrip(kFp8, row)), ErrorOf(row, plain)) << seed;
  }
}

TEST(EncodeTest, AGroupHasOneScaleAndTheLastOfARowMayBeShorter) {
  const std::vector<float> row = RandomRow(224, 2);  // 128 and 96
  const std::vector<char> blocks = Encoded({WeightFormat::kQ4_0, 128}, row);
  std::vector<uint16_t> scales;
  for (size_t i = 0; i < blocks.size(); i += 18) {
    scales.push_back(static_cast<uint16_t>(static_cast<uint8_t>(blocks[i]) |
                                           static_cast<uint8_t>(blocks[i + 1]) << 8));
  }
  ASSERT_EQ(scales.size(), 7u);
  for (size_t i = 1; i < 7; ++i) EXPECT_EQ(scales[i] == scales[0], i < 4) << i;
  for (size_t i = 5; i < 7; ++i) EXPECT_EQ(scales[i], scales[4]) << i;
}

TEST(EncodeTest, ValuesThatTheFormatHasComeBackExactly) {
  std::vector<float> row(32), pair(64);
  for (int i = 0; i < 32; ++i) row[static_cast<size_t>(i)] = 0.25f * static_cast<float>(i % 16 - 8);
  EXPECT_EQ(RoundTrip(kInt4, row), row);
  EXPECT_EQ(RoundTrip(kInt4Asym, row), row);
  for (int i = 0; i < 32; ++i) row[static_cast<size_t>(i)] = 0.5f * static_cast<float>(i * 8 - 121);
  EXPECT_EQ(RoundTrip(kInt8, row), row);
  for (int i = 0; i < 32; ++i) {
    pair[static_cast<size_t>(i)] = std::ldexp(1.0f + 0.125f * static_cast<float>(i % 8), i / 8);
    pair[static_cast<size_t>(i + 32)] = -pair[static_cast<size_t>(i)];
  }
  EXPECT_EQ(RoundTrip(kFp8, pair), pair);
  const std::vector<float> zeros(64, 0.0f);
  const std::vector<float> same(64, 0.375f);
  for (const Quantization& to : {kInt8, kInt4, kInt4Asym, kFp8}) {
    EXPECT_EQ(RoundTrip(to, zeros), zeros) << GetWeightFormat(to.format).name;
  }
  EXPECT_EQ(RoundTrip(kInt4Asym, same), same);
}

TEST(EncodeTest, ZerosOfAPrunedRowStayZero) {
  std::vector<float> row = RandomRow(256, 3);
  for (size_t i = 0; i < row.size(); i += 2) row[i] = 0;
  for (const Quantization& to : {kInt8, kInt4, kFp8}) {
    const std::vector<float> decoded = RoundTrip(to, row);
    for (size_t i = 0; i < row.size(); i += 2) EXPECT_EQ(decoded[i], 0.0f) << i;
  }
}

TEST(EncodeTest, AWeightThatIsNoNumberSpoilsItsGroupVisibly) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1e30f}) {
    for (const Quantization& to : {kInt8, kInt4, kInt4Asym}) {
      std::vector<float> row = RandomRow(64, 4);
      row[5] = bad;
      const std::vector<float> decoded = RoundTrip(to, row);
      EXPECT_TRUE(std::isnan(decoded[0])) << GetWeightFormat(to.format).name;
      EXPECT_FALSE(std::isnan(decoded[40])) << GetWeightFormat(to.format).name;
    }
  }
}

TEST(EncodeTest, WeightsThatAreAlmostNothingBecomeZero) {
  std::vector<float> row(32, 0.0f);
  row[3] = 1e-38f;
  row[4] = -1e-42f;
  for (const Quantization& to : {kInt8, kInt4, kInt4Asym}) {
    for (const float x : RoundTrip(to, row)) EXPECT_EQ(x, 0.0f);
  }
}

TEST(EncodeTest, FloatFormatsAreRoundedToNearest) {
  const std::vector<float> row = {1.0f, 1.0f + 0x1p-12f, -3.14159274f, 1e-8f};
  EXPECT_EQ(RoundTrip({WeightFormat::kF32}, row), row);
  const std::vector<float> halves = RoundTrip({WeightFormat::kF16}, row);
  const std::vector<float> brains = RoundTrip({WeightFormat::kBF16}, row);
  for (size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(halves[i], F16ToF32(F32ToF16(row[i])));
    EXPECT_EQ(brains[i], BF16ToF32(F32ToBF16(row[i])));
  }
}

}  // namespace
}  // namespace llm
