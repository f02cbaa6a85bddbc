// BF16 weights with activations rounded to bf16: against double sums, in every batch, and the same
// bits on every CPU backend, whether it has an instruction for them or not.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "src/tensor/float_convert.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {
namespace {

std::vector<float> RunRounded(const KernelTable& kernels, const Activations& a,
                              const PackedWeight& weight, const float* bias, ThreadPool* pool) {
  std::vector<float> out(static_cast<size_t>(a.rows * weight.rows));
  LinearOutput output = {weight, bias, out.data(), weight.rows};
  const absl::Status status = kernels.linear(
      {.activations = a, .outputs = absl::MakeConstSpan(&output, 1), .round_to_bf16 = true},
      {pool});
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

// As linear_test.cc derives it for K roundings; the rounded activations are what is multiplied.
TEST(LinearBF16Test, EqualsDoubleSumsOverRoundedActivations) {
  std::mt19937 random(41);
  const auto pool = MakePool(2);
  for (const KernelTable* kernels : AvailableKernels()) {
    for (const auto& [rows, outputs, cols] :
         {std::tuple{1, 37, 257}, {2, 64, 33}, {7, 16, 1536}, {33, 50, 640}, {70, 48, 1031}}) {
      SCOPED_TRACE(testing::Message() << kernels->name << ": " << rows << " rows, " << outputs
                                      << " outputs, " << cols << " columns");
      const RandomWeight weight = MakeRandomWeight(WeightFormat::kBF16, outputs, cols, &random);
      const auto packed = Pack(*kernels, weight);
      const RandomActivations a(rows, cols, &random);
      const std::vector<float> out =
          RunRounded(*kernels, a.Values(0, rows), packed->weight, nullptr, pool.get());
      for (size_t i = 0; i < out.size(); ++i) {
        const float* x = &a.values[i / static_cast<size_t>(outputs) * static_cast<size_t>(cols)];
        const float* w =
            &weight.decoded[i % static_cast<size_t>(outputs) * static_cast<size_t>(cols)];
        double sum = 0, squares = 0, largest = 0;
        for (int k = 0; k < cols; ++k) {
          const double rounded = double{BF16ToF32(F32ToBF16(x[k]))};
          sum += rounded * double{w[k]};
          squares += rounded * rounded;
          largest = std::max(largest, std::abs(double{w[k]}));
        }
        const double eps = std::numeric_limits<float>::epsilon();
        ASSERT_NEAR(double{out[i]}, sum, 4 * eps * std::sqrt(cols * squares) * largest) << i;
      }
    }
  }
}

TEST(LinearBF16Test, ARowHasTheSameBitsInEveryBatchAndWithAnyThreads) {
  std::mt19937 random(43);
  const auto pool = MakePool(3);
  const int64_t cols = 1031, outputs = 147, rows = 71;
  const RandomWeight weight = MakeRandomWeight(WeightFormat::kBF16, outputs, cols, &random);
  const std::vector<float> bias(static_cast<size_t>(outputs), 0.25f);
  const RandomActivations a(rows, cols, &random);
  for (const KernelTable* kernels : AvailableKernels()) {
    SCOPED_TRACE(kernels->name);
    const auto packed = Pack(*kernels, weight);
    const auto run = [&](int64_t begin, int64_t count, ThreadPool* threads) {
      return BitsOf(
          RunRounded(*kernels, a.Values(begin, count), packed->weight, bias.data(), threads));
    };
    const std::vector<uint32_t> whole = run(0, rows, pool.get());
    for (int64_t count : {1, 2, 3, 5, 8, 9, 32, 64, 65}) {
      const int64_t begin = rows - count;
      const auto first = whole.begin() + begin * outputs;
      EXPECT_EQ(run(begin, count, nullptr), std::vector<uint32_t>(first, first + count * outputs))
          << count << " rows";
    }
  }
}

// Also for sums that leave f32's normal range at either end.
TEST(LinearBF16Test, EveryCpuBackendGivesTheSameBits) {
  std::mt19937 random(47);
  for (const float size : {1.0f, 1e-19f, 3e-20f, 1e-38f, 1e19f}) {
    const int64_t cols = 301, outputs = 35, rows = 13;
    RandomWeight weight = MakeRandomWeight(WeightFormat::kBF16, outputs, cols, &random);
    RandomActivations a(rows, cols, &random);
    for (size_t i = 0; i < weight.blocks.size(); i += 2) {
      const uint16_t element = F32ToBF16(weight.decoded[i / 2] * size);
      std::memcpy(&weight.blocks[i], &element, sizeof(element));
    }
    for (float& value : a.values) value *= size;
    std::vector<uint32_t> expected;
    for (const KernelTable* kernels : AvailableKernels()) {
      if (kernels->name == std::string("reference")) continue;
      // generic multiplies and adds, so that a product can be flushed by itself.
      if (kernels->name == std::string("generic") && size < 1) continue;
      const auto packed = Pack(*kernels, weight);
      const auto actual =
          BitsOf(RunRounded(*kernels, a.Values(0, rows), packed->weight, nullptr, nullptr));
      if (expected.empty()) expected = actual;
      EXPECT_EQ(actual, expected) << kernels->name << " times " << size;
    }
  }
}

TEST(LinearBF16Test, OtherFormatsAreNotRounded) {
  std::mt19937 random(53);
  const RandomWeight weight = MakeRandomWeight(WeightFormat::kF16, 16, 64, &random);
  const RandomActivations a(3, 64, &random);
  for (const KernelTable* kernels : AvailableKernels()) {
    const auto packed = Pack(*kernels, weight);
    std::vector<float> out(48);
    LinearOutput output = {packed->weight, nullptr, out.data(), 16};
    ASSERT_TRUE(kernels->linear({a.Values(0, 3), absl::MakeConstSpan(&output, 1)}, {nullptr}).ok());
    EXPECT_EQ(BitsOf(RunRounded(*kernels, a.Values(0, 3), packed->weight, nullptr, nullptr)),
              BitsOf(out))
        << kernels->name;
  }
}

}  // namespace
}  // namespace llm
