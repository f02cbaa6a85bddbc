// gate: known values of SiLU and GELU, every backend against the reference, extremes, independence
// of the batch.
#include <limits>

#include "tests/kernels/kernel_test_util.h"

namespace llm {
namespace {

constexpr GateActivation kActivations[] = {GateActivation::kSilu, GateActivation::kGeluTanh,
                                           GateActivation::kClampedSwiglu};

class GateTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, GateTest, testing::ValuesIn(AvailableKernels()), BackendName);

ActivationMemory RunGate(const KernelTable& kernels, GateActivation activation,
                         const Aligned<float>& gate, const Aligned<float>& up, int64_t rows,
                         int64_t cols, Forms forms = Forms::kValues, int num_threads = 1) {
  ActivationMemory out(rows, cols, forms);
  const auto pool = MakePool(num_threads);
  EXPECT_TRUE(kernels
                  .gate({.activation = activation,
                         .gate = gate.data(),
                         .up = up.data(),
                         .input_stride = static_cast<int64_t>(gate.size()) / rows,
                         .limit = 7,
                         .output = out.View()},
                        {pool.get()})
                  .ok());
  return out;
}

TEST_P(GateTest, KnowsSiluAndGelu) {
  const Aligned<float> up(4, 2.0f);
  ExpectNear(RunGate(kernels(), GateActivation::kSilu, {-2, 0, 1, 3}, up, 1, 4).values,
             {-0.476811688f, 0, 1.46211716f, 5.71544476f}, 1e-6);
  ExpectNear(RunGate(kernels(), GateActivation::kGeluTanh, {-2, -0.5f, 0, 1}, up, 1, 4).values,
             {-0.0908046118f, -0.30857198f, 0, 1.68238398f}, 1e-6);
}

// 7 / (1 + e^(-1.702 * 7)) = 6.99995; the gate has no lower bound.
TEST_P(GateTest, ClampsSwigluOnTheSidesThatItShould) {
  const auto out = RunGate(kernels(), GateActivation::kClampedSwiglu, {1, 9, 9, -9, 1, 1},
                           {2, 2, 9, -9, -9, 9}, 1, 6);
  ExpectNear(out.values,
             {2.53738730f, 20.9998594f, 55.9996250f, 1.20190679e-05f, -5.07477460f, 6.76636612f},
             1e-5);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto nans = RunGate(kernels(), GateActivation::kClampedSwiglu, {nan, 1}, {1, nan}, 1, 2);
  EXPECT_TRUE(std::isnan(nans.values[0]));
  EXPECT_TRUE(std::isnan(nans.values[1]));
}

TEST_P(GateTest, EqualsTheReference) {
  for (GateActivation activation : kActivations) {
    for (int64_t cols : {32, 96, 1536, 17}) {
      const size_t size = static_cast<size_t>(3 * (cols + 5));
      const Aligned<float> gate = RandomFloats(size, 1, 4.0f);
      const Aligned<float> up = RandomFloats(size, 2);
      const Forms forms = cols % 32 == 0 ? Forms::kBoth : Forms::kValues;
      const auto actual = RunGate(kernels(), activation, gate, up, 3, cols, forms);
      const auto expected = RunGate(ReferenceKernels(), activation, gate, up, 3, cols, forms);
      // |gate * up| < 128; a handful of operations of a few ulp each, GELU's 1 + tanh loses bits
      // near -1.
      ExpectNear(actual.values, expected.values, 128 * 16 * kFloatEpsilon);
      if (forms == Forms::kBoth) ExpectQuantsOfValues(actual);
    }
  }
}

TEST_P(GateTest, IsAccurateRelativelyForModerateGates) {
  Aligned<float> gate(2048);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = -3.0f + static_cast<float>(i) * 0.01f;
  const Aligned<float> up(gate.size(), 1.0f);
  for (GateActivation activation : kActivations) {
    const auto actual = RunGate(kernels(), activation, gate, up, 1, 2048);
    const auto expected = RunGate(ReferenceKernels(), activation, gate, up, 1, 2048);
    for (size_t i = 0; i < gate.size(); ++i) {
      EXPECT_NEAR(actual.values[i], expected.values[i],
                  1e-4 * std::fabs(expected.values[i]) + 1e-30)
          << gate[i];
    }
  }
}

TEST_P(GateTest, ExtremeGatesGiveZeroOrTheGateAndNanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Aligned<float> gate = {-1000, -90, 90, 1000, -1e30f, 1e30f, nan, 1};
  const Aligned<float> up = {1, 1, 1, 1, 1, 1, 1, nan};
  for (GateActivation activation : {GateActivation::kSilu, GateActivation::kGeluTanh}) {
    const auto out = RunGate(kernels(), activation, gate, up, 1, 8);
    for (size_t i : {0u, 1u, 4u}) EXPECT_NEAR(out.values[i], 0, 1e-30) << gate[i];
    for (size_t i : {2u, 3u, 5u}) EXPECT_EQ(out.values[i], gate[i]);
    EXPECT_TRUE(std::isnan(out.values[6]));
    EXPECT_TRUE(std::isnan(out.values[7]));
  }
}

TEST_P(GateTest, GivesTheSameBitsInAnyBatchFormAndThreadCount) {
  const Aligned<float> gate = RandomFloats(7 * 576, 1, 4.0f);
  const Aligned<float> up = RandomFloats(7 * 576, 2);
  for (GateActivation activation : kActivations) {
    const auto all = RunGate(kernels(), activation, gate, up, 7, 576, Forms::kBoth);
    for (int num_threads : {2, 3}) {
      ExpectSame(RunGate(kernels(), activation, gate, up, 7, 576, Forms::kBoth, num_threads), all);
    }
    const Aligned<float> one_gate(gate.begin(), gate.begin() + 576);
    const auto one = RunGate(kernels(), activation, one_gate, up, 1, 576, Forms::kBoth);
    EXPECT_EQ(std::memcmp(one.Row(0), all.Row(0), 576 * sizeof(float)), 0);
    const auto quants = RunGate(kernels(), activation, gate, up, 7, 576, Forms::kQuants);
    EXPECT_TRUE(SameBits(quants.quants, all.quants));
    EXPECT_TRUE(SameBits(quants.scales, all.scales));
  }
}

}  // namespace
}  // namespace llm
