// Every backend of this machine, with every weight format, against double sums over the decoded
// weights; and bit for bit against itself in other batches, thread counts and groupings.
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/checks.h"
#include "kernels/kernel_table.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {
namespace {

constexpr float kUntouched = -12345.0f;

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const KernelTable* kernels : AvailableKernels()) names.push_back(kernels->name);
  return names;
}

class LinearTest : public testing::TestWithParam<std::tuple<std::string, WeightFormat>> {
 protected:
  const KernelTable& kernels() const { return **FindKernels(std::get<0>(GetParam())); }
  WeightFormat format() const { return std::get<1>(GetParam()); }
  bool quantises() const { return ReadsQuants(format()); }
  int64_t block_size() const { return GetWeightFormat(format()).block_size; }

  // One output alone: [activations.rows, stride], elements between the outputs and the stride
  // untouched.
  std::vector<float> Run(const Activations& a, const PackedWeight& weight, const float* bias,
                         ThreadPool* pool) const {
    const int64_t stride = weight.rows + 3;
    std::vector<float> out(static_cast<size_t>(a.rows * stride), kUntouched);
    LinearOutput output = {weight, bias, out.data(), stride};
    LinearParams params = {a, absl::MakeConstSpan(&output, 1)};
    const absl::Status status = kernels().linear(params, {pool});
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }
};

// |error| <= 4 eps sqrt(K) |a| max|w| sqrt(K): rounding errors of K terms add up as their root; the
// largest weight stands for the scale and minimum of a group, whose terms may cancel. Adding the
// bias and storing the result each round once more, by half an eps of what they give.
double Tolerance(const std::vector<double>& a, const float* w, double bias, double result) {
  double squares = 0, largest = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    squares += a[k] * a[k];
    largest = std::max(largest, std::abs(double{w[k]}));
  }
  const double eps = std::numeric_limits<float>::epsilon();
  return 4 * eps * std::sqrt(static_cast<double>(a.size())) * std::sqrt(squares) * largest +
         eps / 2 * (std::abs(bias) + std::abs(result));
}

// What the kernel multiplies: values, or scale * quant.
std::vector<double> RowAsRead(const Activations& a, int64_t row) {
  std::vector<double> x(static_cast<size_t>(a.cols));
  for (int64_t k = 0; k < a.cols; ++k) {
    const int64_t i = row * a.cols + k;
    x[static_cast<size_t>(k)] = a.values != nullptr
                                    ? double{a.values[i]}
                                    : double{a.scales[i / kActivationGroup]} * a.quants[i];
  }
  return x;
}

void ExpectNearDoubleSums(const Activations& a, const RandomWeight& weight,
                          const std::vector<float>& bias, const std::vector<float>& out) {
  const int64_t stride = weight.rows + 3;
  for (int64_t r = 0; r < a.rows; ++r) {
    const std::vector<double> x = RowAsRead(a, r);
    for (int64_t o = 0; o < stride; ++o) {
      const float actual = out[static_cast<size_t>(r * stride + o)];
      if (o >= weight.rows) {
        ASSERT_EQ(actual, kUntouched) << "row " << r << " output " << o;
        continue;
      }
      const float* w = &weight.decoded[static_cast<size_t>(o * weight.cols)];
      const double added = bias.empty() ? 0.0 : double{bias[static_cast<size_t>(o)]};
      double sum = added;
      for (int64_t k = 0; k < a.cols; ++k) sum += x[static_cast<size_t>(k)] * double{w[k]};
      ASSERT_NEAR(double{actual}, sum, Tolerance(x, w, added, sum))
          << "row " << r << " output " << o << " K " << a.cols;
    }
  }
}

std::vector<float> RandomBias(int64_t count, std::mt19937* random) {
  std::vector<float> bias(static_cast<size_t>(count));
  for (float& value : bias) value = std::normal_distribution<float>()(*random);
  return bias;
}

TEST_P(LinearTest, EqualsDoubleSumsOverTheDecodedWeights) {
  std::mt19937 random(17);
  const auto pool = MakePool(2);
  for (int64_t cols : {32, 256, 576, 640, 1536, 2304}) {
    if (cols % block_size() != 0) continue;
    for (int64_t outputs : {16, 37}) {
      const RandomWeight weight = MakeRandomWeight(format(), outputs, cols, &random);
      const auto packed = Pack(kernels(), weight);
      const std::vector<float> bias = RandomBias(outputs, &random);
      for (int64_t rows : {1, 2, 3, 7, 8, 16, 33, 64}) {
        SCOPED_TRACE(testing::Message()
                     << rows << " rows, " << outputs << " outputs, " << cols << " columns");
        const RandomActivations a(rows, cols, &random);
        const Activations values = a.Values(0, rows);
        ExpectNearDoubleSums(values, weight, {}, Run(values, packed->weight, nullptr, pool.get()));
        if (!quantises()) continue;
        const Activations quants = a.Quants(0, rows);
        ExpectNearDoubleSums(quants, weight, bias,
                             Run(quants, packed->weight, bias.data(), pool.get()));
      }
    }
  }
}

TEST_P(LinearTest, EqualsDoubleSumsForRandomShapes) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pool = MakePool(3);
  for (int trial = 0; trial < 12; ++trial) {
    const int64_t unit = std::max<int64_t>(block_size(), quantises() ? kActivationGroup : 1);
    const int64_t cols =
        unit * static_cast<int64_t>(1 + random() % static_cast<uint32_t>(1500 / unit));
    const int64_t outputs = 1 + static_cast<int64_t>(random() % 100);
    const int64_t rows = 1 + static_cast<int64_t>(random() % 40);
    SCOPED_TRACE(testing::Message()
                 << rows << " rows, " << outputs << " outputs, " << cols << " columns");
    const RandomWeight weight = MakeRandomWeight(format(), outputs, cols, &random);
    const auto packed = Pack(kernels(), weight);
    const std::vector<float> bias = RandomBias(outputs, &random);
    const RandomActivations a(rows, cols, &random);
    const Activations read = quantises() && trial % 2 == 0 ? a.Quants(0, rows) : a.Values(0, rows);
    ExpectNearDoubleSums(read, weight, bias, Run(read, packed->weight, bias.data(), pool.get()));
  }
}

TEST_P(LinearTest, LargestIntegersDoNotOverflow) {
  const int64_t cols = 512;
  std::mt19937 random(5);
  if (!quantises()) return;  // float formats read no integers
  for (const int pattern : {0xff, 0x80, 0x00, 0x7f}) {
    const RandomWeight weight = MakePatternWeight(format(), 16, cols, pattern, &random);
    const auto packed = Pack(kernels(), weight);
    for (const int sign : {1, -1}) {
      RandomActivations a(4, cols, &random);
      for (size_t i = 0; i < a.quants.size(); ++i) a.quants[i] = static_cast<int8_t>(127 * sign);
      for (int16_t& sum : a.sums) sum = static_cast<int16_t>(127 * sign * kActivationSumGroup);
      const Activations read = a.Quants(0, 4);
      ExpectNearDoubleSums(read, weight, {}, Run(read, packed->weight, nullptr, nullptr));
    }
  }
}

// The bits of rows [begin, begin + count) of a larger result.
void ExpectSameBits(const std::vector<float>& whole, const std::vector<float>& part,
                    size_t offset) {
  for (size_t i = 0; i < part.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(whole[offset + i]), std::bit_cast<uint32_t>(part[i]))
        << "element " << i;
  }
}

TEST_P(LinearTest, ARowHasTheSameBitsInEveryBatchAndWithAnyThreads) {
  std::mt19937 random(23);
  const auto two = MakePool(2);
  const auto three = MakePool(3);
  for (int64_t cols : {256, 1536}) {
    const int64_t outputs = 147;
    const RandomWeight weight = MakeRandomWeight(format(), outputs, cols, &random);
    const auto packed = Pack(kernels(), weight);
    const std::vector<float> bias = RandomBias(outputs, &random);
    const RandomActivations a(65, cols, &random);
    for (const bool quants : {false, true}) {
      if (quants && !quantises()) continue;
      const auto rows = [&](int64_t begin, int64_t count) {
        return quants ? a.Quants(begin, count) : a.Values(begin, count);
      };
      const auto run = [&](int64_t begin, int64_t count, ThreadPool* pool) {
        return Run(rows(begin, count), packed->weight, bias.data(), pool);
      };
      const std::vector<float> whole = run(0, 65, three.get());
      const int64_t stride = outputs + 3;
      for (int64_t row = 0; row < 65; ++row) {
        ExpectSameBits(whole, run(row, 1, row % 2 == 0 ? nullptr : two.get()),
                       static_cast<size_t>(row * stride));
      }
      for (int64_t count : {2, 3, 5, 7, 8, 16, 33, 64}) {
        ThreadPool* pools[] = {nullptr, two.get(), three.get()};
        const int64_t begin = (65 - count) / 2;
        ExpectSameBits(whole, run(begin, count, pools[count % 3]),
                       static_cast<size_t>(begin * stride));
      }
    }
  }
}

TEST_P(LinearTest, OutputsOfOneCallHaveTheBitsOfSeparateCalls) {
  std::mt19937 random(29);
  const auto pool = MakePool(2);
  const int64_t cols = 512;
  std::vector<std::unique_ptr<Packed>> weights;
  std::vector<LinearOutput> outputs;
  std::vector<std::vector<float>> results;
  // Other formats beside the tested one, as in mixed files.
  for (const auto& [outputs_of_one, other] : {std::pair{144, format()},
                                              {17, WeightFormat::kQ8_0},
                                              {33, format()},
                                              {160, WeightFormat::kQ6_K}}) {
    weights.push_back(Pack(kernels(), MakeRandomWeight(other, outputs_of_one, cols, &random)));
  }
  const RandomActivations a(19, cols, &random);
  for (const bool quants : {false, true}) {
    if (quants && !quantises()) continue;
    const Activations read = quants ? a.Quants(0, 19) : a.Values(0, 19);
    outputs.clear();
    results.assign(weights.size(), {});
    for (size_t i = 0; i < weights.size(); ++i) {
      const int64_t stride = weights[i]->weight.rows + 3;
      results[i].assign(static_cast<size_t>(19 * stride), kUntouched);
      outputs.push_back({weights[i]->weight, nullptr, results[i].data(), stride});
    }
    ASSERT_TRUE(kernels().linear({read, outputs}, {pool.get()}).ok());
    for (size_t i = 0; i < weights.size(); ++i) {
      ExpectSameBits(results[i], Run(read, weights[i]->weight, nullptr, nullptr), 0);
    }
  }
}

TEST_P(LinearTest, EmbedGivesTheDecodedRowsTimesTheScale) {
  std::mt19937 random(31);
  const int64_t cols = 768;
  const RandomWeight weight = MakeRandomWeight(format(), 37, cols, &random);
  const auto packed = Pack(kernels(), weight);
  const std::vector<int32_t> ids = {36, 0, 15, 16, 36, 1};
  std::vector<float> out(ids.size() * static_cast<size_t>(cols));
  const EmbedParams params = {packed->weight, ids, 3.0f, out.data()};
  ASSERT_TRUE(kernels().embed(params, {}).ok());
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t k = i % static_cast<size_t>(cols);
    const size_t row = static_cast<size_t>(ids[i / static_cast<size_t>(cols)]);
    ASSERT_EQ(out[i], weight.decoded[row * static_cast<size_t>(cols) + k] * 3.0f)
        << "token " << i / 768 << " col " << k;
  }
  const std::vector<int32_t> outside = {0, 37};
  EXPECT_EQ(kernels().embed({packed->weight, outside, 1.0f, out.data()}, {}).code(),
            absl::StatusCode::kInvalidArgument);
}

// Of the step before: rows 21 and 3 are the best ids, 8 was drawn, and one could not be.
TEST_P(LinearTest, EmbedTakesTokensThatAreStillPendingFromTheRowsThatNameThem) {
  std::mt19937 random(32);
  const int64_t cols = 768;
  const RandomWeight weight = MakeRandomWeight(format(), 37, cols, &random);
  const auto packed = Pack(kernels(), weight);
  const std::vector<int32_t> argmax = {21, kLogitsNotFinite, 3};
  const std::vector<TokenLogprob> drawn = {{kNothingToDraw, 0.0f}, {8, 0.0f}};
  const PendingTokens pending = {argmax.data(), drawn.data(), 3, 2};
  const std::vector<int32_t> ids = {PendingDraw(1),   PendingArgmax(2), 5,
                                    PendingArgmax(0), PendingArgmax(1), PendingDraw(0)};
  const std::vector<size_t> expected = {8, 3, 5, 21, 0, 0};
  std::vector<float> out(ids.size() * static_cast<size_t>(cols));
  ASSERT_TRUE(kernels().embed({packed->weight, ids, 1.0f, out.data(), pending}, {}).ok());
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t k = i % static_cast<size_t>(cols);
    const size_t row = expected[i / static_cast<size_t>(cols)];
    ASSERT_EQ(out[i], weight.decoded[row * static_cast<size_t>(cols) + k]) << "at " << i;
  }
  for (const int32_t id : {PendingArgmax(3), PendingDraw(2), INT32_MIN, INT32_MIN + 1}) {
    const std::vector<int32_t> one = {id};
    EXPECT_EQ(kernels().embed({packed->weight, one, 1.0f, out.data(), pending}, {}).code(),
              absl::StatusCode::kInvalidArgument);
  }
  const std::vector<int32_t> none = {PendingArgmax(0)};
  EXPECT_EQ(kernels().embed({packed->weight, none, 1.0f, out.data()}, {}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(LinearTest, PackedSizeStaysNearTheFileAndImpossibleSizesAreRefused) {
  const WeightFormatInfo& info = GetWeightFormat(format());
  const auto bytes = kernels().packed_bytes(format(), 4096, 2048);
  ASSERT_TRUE(bytes.ok());
  EXPECT_LE(static_cast<double>(*bytes), 1.03 * 4096.0 * static_cast<double>(RowBytes(info, 2048)));
  const int64_t huge = INT64_MAX / 2 / 256 * 256;
  EXPECT_EQ(kernels().packed_bytes(format(), huge, huge).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(kernels().packed_bytes(format(), 16, huge).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(kernels().packed_bytes(format(), 16, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  if (info.block_size > 1) {
    EXPECT_EQ(kernels().packed_bytes(format(), 16, info.block_size + 1).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// A pack file may hold anything: sanitizers see what an index outside its table would read.
TEST_P(LinearTest, AnyPackedBytesGiveAnAnswer) {
  std::mt19937 random(43);
  const RandomActivations a(3, 512, &random);
  for (int trial = 0; trial < 8; ++trial) {
    const auto packed = Pack(kernels(), MakeRandomWeight(format(), 32, 512, &random));
    for (size_t i = 0; i < packed->buffer.size(); ++i) {
      packed->buffer.data()[i] = static_cast<std::byte>(trial == 0 ? 0xff : random());
    }
    EXPECT_EQ(Run(a.Values(0, 3), packed->weight, nullptr, nullptr).size(), 3u * 35);
    if (quantises()) {
      EXPECT_EQ(Run(a.Quants(0, 3), packed->weight, nullptr, nullptr).size(), 3u * 35);
    }
    std::vector<float> row(512);
    const std::vector<int32_t> ids = {31};
    EXPECT_TRUE(kernels().embed({packed->weight, ids, 1.0f, row.data()}, {}).ok());
  }
}

TEST_P(LinearTest, WrongArgumentsGiveAStatus) {
  std::mt19937 random(37);
  const auto packed = Pack(kernels(), MakeRandomWeight(format(), 16, 256, &random));
  const RandomActivations a(2, 256, &random);
  std::vector<float> out(64);
  LinearOutput output = {packed->weight, nullptr, out.data(), 16};
  const auto run = [&](const Activations& read) {
    return kernels().linear({read, absl::MakeConstSpan(&output, 1)}, {});
  };
  EXPECT_TRUE(run(a.Values(0, 2)).ok());
  EXPECT_EQ(run(a.Quants(0, 2)).ok(), quantises());
  Activations narrow = a.Values(0, 2);
  narrow.cols = 128;
  EXPECT_EQ(run(narrow).code(), absl::StatusCode::kInvalidArgument);
  output.out_stride = 15;
  EXPECT_EQ(run(a.Values(0, 2)).code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, LinearTest,
                         testing::Combine(testing::ValuesIn(BackendNames()),
                                          testing::ValuesIn(AllWeightFormats())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  GetWeightFormat(std::get<1>(instance.param)).name;
                         });

TEST(KernelTableTest, FindsBackendsByNameAndTheFastestByDefault) {
  const std::vector<const KernelTable*> all = AvailableKernels();
  EXPECT_STREQ(all.back()->name, "reference");
  EXPECT_EQ(*FindKernels(""), all.front());
  EXPECT_EQ(*FindKernels("generic"), all[all.size() - 2]);
  const absl::Status unknown = FindKernels("sse9").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), testing::HasSubstr("generic, reference"));
}

}  // namespace
}  // namespace llm
