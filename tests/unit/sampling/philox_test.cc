// Philox4x32-10 against the known answers that its authors publish, and what is made of its bits.
#include "kernels/philox.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(PhiloxTest, GivesThePublishedValues) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, GivesUniformNumbersThatDependOnSeedAndPosition) {
  double sum = 0;
  for (int64_t position = 0; position < 10000; ++position) {
    ASSERT_EQ(RandomBits(42, position), RandomBits(42, position));
    sum += static_cast<double>(RandomBits(42, position)) * 0x1p-64;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 4 * 0.2887 / 100);  // four standard deviations of the mean
  EXPECT_NE(RandomBits(42, 0), RandomBits(43, 0));
  EXPECT_NE(RandomBits(1, 0), RandomBits(uint64_t{1} << 32, 0));
}

}  // namespace
}  // namespace llm
