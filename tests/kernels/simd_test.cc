// The vector layer of every instruction set that this machine has, against scalar conversions and
// libm.
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_features.h"
#include "src/tensor/float_convert.h"
#include "tests/kernels/simd_probe.h"

namespace llm {
namespace {

using Lanes = std::array<float, 16>;

class SimdTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const CpuFeatures features = DetectCpuFeatures();
    if (GetParam() == "generic") probe_ = generic::GetSimdProbe();
#if defined(__x86_64__)
    const bool missing =
        (GetParam() == "avx2" && !features.avx2) || (GetParam() == "avx512" && !features.avx512);
    if (missing) GTEST_SKIP() << "this machine has no " << GetParam();
    if (GetParam() == "avx2") probe_ = avx2::GetSimdProbe();
    if (GetParam() == "avx512") probe_ = avx512::GetSimdProbe();
#else
    if (GetParam() != "generic") GTEST_SKIP() << "not an x86-64 machine";
#endif
  }

  SimdProbe probe_;
};

bool SameFloat(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Every kind of f32: all exponents, random mantissas, the edges of the small formats, and what is
// not finite.
std::vector<float> ManyFloats() {
  std::mt19937 random(1);
  std::vector<float> values;
  for (int i = 0; i < (1 << 16); ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (uint32_t code = 0; code < 0x7f; ++code) {
    const float value = F8E4M3ToF32(static_cast<uint8_t>(code));
    const float next = F8E4M3ToF32(static_cast<uint8_t>(code + (code < 0x7e ? 1 : 0)));
    for (float x : {value, (value + next) / 2, std::nextafter((value + next) / 2, 0.0f)}) {
      values.push_back(x);
      values.push_back(-x);
    }
  }
  for (uint32_t code = 0; code < 0x7c00; ++code) {
    const float value = F16ToF32(static_cast<uint16_t>(code));
    values.push_back((value + F16ToF32(static_cast<uint16_t>(code + 1))) / 2);
  }
  const float inf = std::numeric_limits<float>::infinity();
  for (float x :
       {0.0f, -0.0f, inf, -inf, std::nanf(""), 448.0f, 464.0f, 465.0f, 65504.0f, 65520.0f})
    values.push_back(x);
  while (values.size() % 16 != 0) values.push_back(0);
  return values;
}

TEST_P(SimdTest, ReadsEveryF16AndBF16) {
  for (uint32_t begin = 0; begin < 65536; begin += 16) {
    std::array<uint16_t, 16> codes;
    for (uint32_t i = 0; i < 16; ++i) codes[i] = static_cast<uint16_t>(begin + i);
    Lanes f16, bf16;
    probe_.load_f16(codes.data(), f16.data());
    probe_.load_bf16(codes.data(), bf16.data());
    for (size_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(SameFloat(f16[i], F16ToF32(codes[i]))) << "f16 " << codes[i];
      ASSERT_TRUE(SameFloat(bf16[i], BF16ToF32(codes[i]))) << "bf16 " << codes[i];
    }
  }
}

TEST_P(SimdTest, ReadsEveryF8AndI8) {
  for (uint32_t begin = 0; begin < 256; begin += 16) {
    std::array<uint8_t, 16> codes;
    std::array<int8_t, 16> ints;
    for (uint32_t i = 0; i < 16; ++i) {
      codes[i] = static_cast<uint8_t>(begin + i);
      ints[i] = static_cast<int8_t>(codes[i]);
    }
    Lanes f8, i8;
    probe_.load_f8(codes.data(), f8.data());
    probe_.load_i8(ints.data(), i8.data());
    for (size_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(SameFloat(f8[i], F8E4M3ToF32(codes[i]))) << "f8 " << int{codes[i]};
      ASSERT_EQ(i8[i], static_cast<float>(ints[i]));
    }
  }
}

TEST_P(SimdTest, WritesSmallFloatsAsTheScalarConversions) {
  const std::vector<float> values = ManyFloats();
  for (size_t begin = 0; begin < values.size(); begin += 16) {
    std::array<uint16_t, 16> f16, bf16;
    std::array<uint8_t, 16> f8;
    probe_.store_f16(&values[begin], f16.data());
    probe_.store_bf16(&values[begin], bf16.data());
    probe_.store_f8(&values[begin], f8.data());
    for (size_t i = 0; i < 16; ++i) {
      const float x = values[begin + i];
      ASSERT_TRUE(SameFloat(F16ToF32(f16[i]), F16ToF32(F32ToF16(x)))) << x;
      ASSERT_TRUE(SameFloat(BF16ToF32(bf16[i]), BF16ToF32(F32ToBF16(x)))) << x;
      ASSERT_EQ(f8[i], F32ToF8E4M3(x)) << x;
    }
  }
}

TEST_P(SimdTest, RoundsToNearestEven) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-127.4f, 127.4f);
  for (int trial = 0; trial < 2000; ++trial) {
    Lanes x, rounded;
    std::array<int8_t, 16> stored;
    for (float& lane : x)
      lane = trial % 2 == 0 ? uniform(random) : std::floor(uniform(random)) * 0.5f;
    probe_.round(x.data(), rounded.data());
    probe_.store_i8(x.data(), stored.data());
    for (size_t i = 0; i < 16; ++i) {
      ASSERT_EQ(rounded[i], std::nearbyint(x[i])) << x[i];
      ASSERT_EQ(static_cast<float>(stored[i]), std::nearbyint(x[i])) << x[i];
    }
  }
}

TEST_P(SimdTest, ExpAndTanhAreWithinTheirStatedErrors) {
  std::mt19937 random(3);
  for (float range : {1e-4f, 0.7f, 5.0f, 87.0f}) {
    std::uniform_real_distribution<float> uniform(-range, range);
    for (int trial = 0; trial < 20000; ++trial) {
      Lanes x, e, t;
      for (float& lane : x) lane = uniform(random);
      probe_.exp(x.data(), e.data());
      probe_.tanh(x.data(), t.data());
      for (size_t i = 0; i < 16; ++i) {
        const double exact_exp = std::exp(double{x[i]});
        const double exact_tanh = std::tanh(double{x[i]});
        ASSERT_LE(std::abs(e[i] - exact_exp), 1.5e-7 * exact_exp) << x[i];
        ASSERT_LE(std::abs(t[i] - exact_tanh), 4 * 0x1p-23 * std::abs(exact_tanh)) << x[i];
      }
    }
  }
}

TEST_P(SimdTest, ExpAndTanhOfExtremeValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const Lanes x = {-inf, inf, std::nanf(""), 0, -0.0f, -200, 200, 1e30f, -1e30f};
  Lanes e, t;
  probe_.exp(x.data(), e.data());
  probe_.tanh(x.data(), t.data());
  const Lanes exp_expected = {0, inf, std::nanf(""), 1, 1, 0, inf, inf, 0};
  const Lanes tanh_expected = {-1, 1, std::nanf(""), 0, -0.0f, -1, 1, 1, -1};
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_TRUE(SameFloat(e[i], exp_expected[i])) << "exp " << x[i] << " = " << e[i];
    EXPECT_TRUE(SameFloat(t[i], tanh_expected[i])) << "tanh " << x[i] << " = " << t[i];
  }
}

TEST_P(SimdTest, PartialLoadsAndStoresTouchOnlyTheirLanes) {
  for (int n = 0; n <= 16; ++n) {
    // The exact size on the heap, so that a sanitizer sees a lane too many.
    std::vector<float> in(static_cast<size_t>(n), 3.0f);
    Lanes out;
    out.fill(-1.0f);
    probe_.copy(in.data(), n, out.data());
    for (int i = 0; i < 16; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], i < n ? 3.0f : -1.0f);
  }
}

TEST_P(SimdTest, ReducesAllLanes) {
  Lanes x;
  for (size_t i = 0; i < 16; ++i) x[i] = static_cast<float>((i * 7) % 16) - 8.0f;
  EXPECT_EQ(probe_.sum(x.data()), -8.0f);
  EXPECT_EQ(probe_.max(x.data()), 7.0f);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, SimdTest, testing::Values("generic", "avx2", "avx512"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace llm
