// Which blocks have a scale that a sum over the row can be multiplied with.
#include "src/model/row_scales.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/quant/f8_e4m3.h"
#include "kernels/quant/q8_f32.h"

namespace llm {
namespace {

constexpr int64_t kCols = 192;
constexpr int64_t kBlocks = 3;  // of a row

template <typename Block>
std::vector<Block> Rows(std::vector<float> scales) {
  std::vector<Block> blocks(scales.size());
  for (size_t i = 0; i < scales.size(); ++i) blocks[i].scale = scales[i];
  return blocks;
}

template <typename Block>
bool Have(WeightFormat format, const std::vector<Block>& blocks) {
  return HaveRowScales(format, kCols, static_cast<int64_t>(blocks.size()) / kBlocks,
                       reinterpret_cast<const std::byte*>(blocks.data()));
}

TEST(RowScalesTest, AreThereWhenEachRowRepeatsOne) {
  EXPECT_TRUE(Have(WeightFormat::kF8_E4M3, Rows<F8_E4M3>({1, 1, 1, 2, 2, 2})));
  EXPECT_TRUE(Have(WeightFormat::kQ8_F32, Rows<Q8_F32>({1, 1, 1, 1, 1, 1})));
}

TEST(RowScalesTest, AreNotThereWhenABlockDiffers) {
  EXPECT_FALSE(Have(WeightFormat::kF8_E4M3, Rows<F8_E4M3>({1, 1, 1, 2, 2, 3})));
  EXPECT_FALSE(Have(WeightFormat::kQ8_F32, Rows<Q8_F32>({1, 2, 1, 1, 1, 1})));
}

TEST(RowScalesTest, OtherFormatsHaveNone) {
  const std::vector<uint16_t> zeros(kCols);
  EXPECT_FALSE(HaveRowScales(WeightFormat::kBF16, kCols, 1,
                             reinterpret_cast<const std::byte*>(zeros.data())));
}

}  // namespace
}  // namespace llm
