// Every block format against the values that ggml's own decoders give for the same random blocks.
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/quant/weight_format.h"

namespace llm {
namespace {

std::string ReadBlocksFile(const std::string& name) {
  std::ifstream in(std::string(INLAY_TEST_DATA "/gguf/blocks/") + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The payload of a version 1 .npy file of float32.
std::vector<float> NpyFloats(const std::string& npy) {
  EXPECT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_NE(npy.find("'<f4'"), std::string::npos);
  EXPECT_NE(npy.find("'fortran_order': False"), std::string::npos);
  uint16_t header_size;
  std::memcpy(&header_size, npy.data() + 8, 2);
  std::vector<float> values((npy.size() - 10 - header_size) / sizeof(float));
  std::memcpy(values.data(), npy.data() + 10 + header_size, values.size() * sizeof(float));
  return values;
}

class BlockFormatTest : public testing::TestWithParam<WeightFormat> {};

TEST_P(BlockFormatTest, DecodesToTheBitsOfTheGolden) {
  const WeightFormatInfo& info = GetWeightFormat(GetParam());
  const std::string blocks = ReadBlocksFile(std::string(info.name) + ".bin");
  const std::vector<float> golden = NpyFloats(ReadBlocksFile(std::string(info.name) + ".npy"));
  const int64_t count = static_cast<int64_t>(golden.size());
  ASSERT_GT(count, 0);
  ASSERT_EQ(static_cast<int64_t>(blocks.size()), RowBytes(info, count));

  std::vector<float> decoded(golden.size());
  info.decode(blocks.data(), count, decoded.data());
  for (size_t i = 0; i < golden.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]), std::bit_cast<uint32_t>(golden[i]))
        << "element " << i << ": " << decoded[i] << " instead of " << golden[i];
  }
}

TEST_P(BlockFormatTest, DecodesFromUnalignedBytes) {
  const WeightFormatInfo& info = GetWeightFormat(GetParam());
  const std::string blocks = ReadBlocksFile(std::string(info.name) + ".bin");
  const std::string shifted = "?" + blocks;
  std::vector<float> aligned(static_cast<size_t>(info.block_size));
  std::vector<float> unaligned(aligned.size());
  info.decode(blocks.data(), info.block_size, aligned.data());
  info.decode(shifted.data() + 1, info.block_size, unaligned.data());
  EXPECT_EQ(std::memcmp(aligned.data(), unaligned.data(), aligned.size() * sizeof(float)), 0);
}

// Every format whose blocks hold more than one element.
std::vector<WeightFormat> BlockFormats() {
  std::vector<WeightFormat> formats;
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) \
  if (block_size > 1) formats.push_back(WeightFormat::k##name);
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
  return formats;
}

// Files may hold anything: sanitizers see what a table index outside its table would read.
TEST_P(BlockFormatTest, DecodesAnyBytesToTheSameValuesEveryTime) {
  const WeightFormatInfo& info = GetWeightFormat(GetParam());
  std::mt19937 random(41);
  std::vector<uint8_t> block(static_cast<size_t>(info.block_bytes));
  std::vector<float> first(static_cast<size_t>(info.block_size));
  std::vector<float> second(first.size());
  for (int trial = 0; trial < 2000; ++trial) {
    const bool constant = trial < 256;
    for (uint8_t& byte : block) byte = static_cast<uint8_t>(constant ? trial : random());
    info.decode(block.data(), info.block_size, first.data());
    info.decode(block.data(), info.block_size, second.data());
    ASSERT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BlockFormatTest, testing::ValuesIn(BlockFormats()),
                         [](const auto& param) { return GetWeightFormat(param.param).name; });

TEST(WeightFormatTest, DecodesFloatsOfAllWidths) {
  const float f32[2] = {1.5f, -0x1p-130f};
  const uint16_t f16[2] = {0x3e00, 0x8001};   // 1.5, -2^-24
  const uint16_t bf16[2] = {0x3fc0, 0x8001};  // 1.5, -2^-133
  float decoded[2];
  GetWeightFormat(WeightFormat::kF32).decode(f32, 2, decoded);
  EXPECT_THAT(decoded, testing::ElementsAre(1.5f, -0x1p-130f));
  GetWeightFormat(WeightFormat::kF16).decode(f16, 2, decoded);
  EXPECT_THAT(decoded, testing::ElementsAre(1.5f, -0x1p-24f));
  GetWeightFormat(WeightFormat::kBF16).decode(bf16, 2, decoded);
  EXPECT_THAT(decoded, testing::ElementsAre(1.5f, -0x1p-133f));
}

TEST(WeightFormatTest, FindsARowByItsTypeIdAndNothingForAnyOther) {
  EXPECT_STREQ(FindWeightFormat(14)->name, "Q6_K");
  EXPECT_EQ(RowBytes(*FindWeightFormat(14), 512), 420);
  for (int32_t id : {-1, 4, 5, 9, 31, 1000}) EXPECT_EQ(FindWeightFormat(id), nullptr) << id;
}

}  // namespace
}  // namespace llm
