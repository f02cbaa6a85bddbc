// The conversions against the definition of each format: sign * 2^exponent * significand, and
// rounding to the nearest code.
#include "src/tensor/float_convert.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace llm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The value of a code without special codes: `exponent_bits` and `mantissa_bits` as IEEE 754 lays
// them out.
double Value(uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const bool negative = (code >> (exponent_bits + mantissa_bits)) & 1;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return negative ? -magnitude : magnitude;
}

// Between each pair of neighbouring codes: the middle goes to the even code, one float beside it to
// the nearer one.
template <typename Code>
void ExpectNearestEven(Code first, Code last, Code sign_bit, Code (*encode)(float),
                       float (*decode)(Code)) {
  for (uint32_t i = first; i < last; ++i) {
    const Code low = static_cast<Code>(i);
    const Code high = static_cast<Code>(i + 1);
    const float middle = static_cast<float>(
        (static_cast<double>(decode(low)) + static_cast<double>(decode(high))) / 2);
    const Code even = low % 2 == 0 ? low : high;
    ASSERT_EQ(encode(middle), even) << "between codes " << i << " and " << i + 1;
    ASSERT_EQ(encode(-middle), even | sign_bit) << "between codes " << i << " and " << i + 1;
    ASSERT_EQ(encode(std::nextafter(middle, 0.0f)), low) << "below the middle after code " << i;
    ASSERT_EQ(encode(std::nextafter(middle, kInf)), high) << "above the middle after code " << i;
  }
}

TEST(FloatConvertTest, EveryHalfHasTheValueOfItsFieldsAndComesBack) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const uint16_t half = static_cast<uint16_t>(code);
    const float value = F16ToF32(half);
    if ((code & 0x7c00) != 0x7c00) {
      ASSERT_EQ(static_cast<double>(value), Value(code, 5, 10)) << code;
    } else if ((code & 0x3ff) == 0) {
      ASSERT_EQ(value, code == 0x7c00 ? kInf : -kInf);
    } else {
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_TRUE(std::isnan(F16ToF32(F32ToF16(value)))) << code;
      continue;
    }
    ASSERT_EQ(std::signbit(value), (code & 0x8000) != 0) << code;
    ASSERT_EQ(F32ToF16(value), half) << code;
  }
}

TEST(FloatConvertTest, RoundsToTheNearestHalfAndTiesToEven) {
  ExpectNearestEven<uint16_t>(0, 0x7bff, 0x8000, F32ToF16, F16ToF32);
}

TEST(FloatConvertTest, BecomesAnInfiniteHalfFromTheMiddleBeyondTheLargestOn) {
  EXPECT_EQ(F32ToF16(65504.0f), 0x7bff);
  EXPECT_EQ(F32ToF16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(F32ToF16(-65520.0f), 0xfc00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(F32ToF16(-kInf), 0xfc00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(F32ToF16(-0.0f), 0x8000);
}

TEST(FloatConvertTest, EveryBFloatHasTheValueOfItsFieldsAndComesBack) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = BF16ToF32(static_cast<uint16_t>(code));
    if ((code & 0x7f80) == 0x7f80 && (code & 0x7f) != 0) {
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_TRUE(std::isnan(BF16ToF32(F32ToBF16(value)))) << code;
      continue;
    }
    if ((code & 0x7f80) == 0x7f80) {
      ASSERT_EQ(value, code == 0x7f80 ? kInf : -kInf);
    } else {
      ASSERT_EQ(static_cast<double>(value), Value(code, 8, 7)) << code;
    }
    ASSERT_EQ(F32ToBF16(value), code);
  }
}

TEST(FloatConvertTest, RoundsToTheNearestBFloatAndTiesToEven) {
  ExpectNearestEven<uint16_t>(0, 0x7f7f, 0x8000, F32ToBF16, BF16ToF32);
  EXPECT_EQ(F32ToBF16(std::numeric_limits<float>::max()), 0x7f80);
  // A NaN whose payload lies only in the bits that are cut off must not turn into an infinity.
  EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(FloatConvertTest, EveryE4M3HasTheValueOfItsFieldsAndComesBack) {
  for (uint32_t code = 0; code < 256; ++code) {
    const uint8_t byte = static_cast<uint8_t>(code);
    const float value = F8E4M3ToF32(byte);
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(static_cast<double>(value), Value(code, 4, 3)) << code;
      EXPECT_EQ(std::signbit(value), (code & 0x80) != 0) << code;
    }
    EXPECT_EQ(F32ToF8E4M3(value), byte) << code;
  }
  EXPECT_EQ(F8E4M3ToF32(0x7e), 448.0f);
}

TEST(FloatConvertTest, RoundsToTheNearestE4M3AndTiesToEven) {
  ExpectNearestEven<uint8_t>(0, 0x7e, 0x80, F32ToF8E4M3, F8E4M3ToF32);
}

TEST(FloatConvertTest, SaturatesE4M3InsteadOfOverflowing) {
  for (float large : {448.0f, 449.0f, 464.0f, 480.0f, 1e30f, kInf}) {
    EXPECT_EQ(F32ToF8E4M3(large), 0x7e) << large;
    EXPECT_EQ(F32ToF8E4M3(-large), 0xfe) << large;
  }
  EXPECT_EQ(F32ToF8E4M3(kNaN), 0x7f);
  EXPECT_EQ(F32ToF8E4M3(1e-30f), 0);
  EXPECT_EQ(F32ToF8E4M3(-1e-30f), 0x80);
}

}  // namespace
}  // namespace llm
