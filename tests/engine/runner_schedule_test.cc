// The schedule cannot change the answer: chunked = whole, batched = alone, copied = computed,
// threads = one, bit for bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/model_harness.h"
#include "tests/support/random_model.h"

namespace llm {
namespace {

struct Case {
  std::string architecture;
  WeightFormat format;
  WeightFormat value_format;
  bool float_activations;
  DType kv_dtype;
  const KernelTable* kernels;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const KernelTable* kernels : AvailableKernels()) {
    for (const DType dtype :
         {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kI8, DType::kI4}) {
      cases.push_back({"llama", WeightFormat::kQ4_1, WeightFormat::kQ8_0, false, dtype, kernels});
      cases.push_back({"gemma3", WeightFormat::kQ4_1, WeightFormat::kF16, false, dtype, kernels});
      cases.push_back({"gemma3", WeightFormat::kF16, WeightFormat::kBF16, true, dtype, kernels});
      if (dtype != DType::kF16) continue;
      cases.push_back({"llama", WeightFormat::kBF16, WeightFormat::kBF16, false, dtype, kernels});
    }
    for (const DType dtype : {DType::kF16, DType::kI8}) {
      cases.push_back({"gemma2", WeightFormat::kQ4_1, WeightFormat::kF16, false, dtype, kernels});
      cases.push_back({"phi3", WeightFormat::kQ4_1, WeightFormat::kQ8_0, false, dtype, kernels});
      cases.push_back({"phi3", WeightFormat::kF16, WeightFormat::kBF16, true, dtype, kernels});
      cases.push_back({"gpt-oss", WeightFormat::kMXFP4, WeightFormat::kF16, false, dtype, kernels});
      cases.push_back({"gpt-oss", WeightFormat::kMXFP4, WeightFormat::kBF16, true, dtype, kernels});
      cases.push_back(
          {"deepseek2", WeightFormat::kQ4_1, WeightFormat::kF16, false, dtype, kernels});
      cases.push_back({"deepseek2", WeightFormat::kF16, WeightFormat::kBF16, true, dtype, kernels});
      cases.push_back(
          {"deepseek2", WeightFormat::kBF16, WeightFormat::kBF16, false, dtype, kernels});
      cases.push_back({"qwen3moe", WeightFormat::kQ4_1, WeightFormat::kF16, false, dtype, kernels});
      cases.push_back({"qwen3moe", WeightFormat::kF16, WeightFormat::kBF16, true, dtype, kernels});
    }
  }
  return cases;
}

std::vector<int32_t> Prompt(int length, int32_t seed) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back((seed + i * i * 31 + i * 7) % 160);
  return tokens;
}

class RunnerScheduleTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<ModelHarness> Make(int num_threads) {
    const Case& c = GetParam();
    const FakeWeightSource source = RandomModel(
        {.architecture = c.architecture, .format = c.format, .value_format = c.value_format});
    auto harness = ModelHarness::Create(source, {.kernels = c.kernels,
                                                 .num_threads = num_threads,
                                                 .kv_dtype = c.kv_dtype,
                                                 .float_activations = c.float_activations});
    EXPECT_TRUE(harness.ok()) << harness.status();
    return harness.ok() ? *std::move(harness) : nullptr;
  }
  // The oracle: one thread, one chunk, alone.
  std::vector<float> Alone(const std::vector<int32_t>& tokens) {
    const std::unique_ptr<ModelHarness> harness = Make(1);
    const auto sequence = harness->NewSequence(tokens, static_cast<int>(tokens.size()));
    const auto logits = harness->LogitsOfAll(sequence.get(), 256);
    EXPECT_TRUE(logits.ok()) << logits.status();
    return *logits;
  }
  static void ExpectSameBits(const std::vector<float>& actual, const std::vector<float>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0);
  }
  static std::vector<float> Rows(const std::vector<float>& logits, int begin, int end) {
    return {logits.begin() + begin * 160, logits.begin() + end * 160};
  }
};

TEST_P(RunnerScheduleTest, ChunkedPrefillEqualsWholePrefill) {
  const std::vector<int32_t> tokens = Prompt(75, 3);
  const std::vector<float> expected = Alone(tokens);
  for (const int chunk_size : {1, 7, 16, 40}) {
    const std::unique_ptr<ModelHarness> harness = Make(2);
    const auto sequence = harness->NewSequence(tokens, 75);
    const auto logits = harness->LogitsOfAll(sequence.get(), chunk_size);
    ASSERT_TRUE(logits.ok()) << logits.status();
    ExpectSameBits(*logits, expected);
  }
}

TEST_P(RunnerScheduleTest, BatchedEqualsAlone) {
  const std::vector<int32_t> a = Prompt(50, 1);
  const std::vector<int32_t> b = Prompt(33, 2);
  const std::vector<int32_t> c = Prompt(64, 5);
  const std::unique_ptr<ModelHarness> harness = Make(3);
  const auto sequence_a = harness->NewSequence(a, 50);
  const auto sequence_b = harness->NewSequence(b, 33);
  const auto sequence_c = harness->NewSequence(c, 64);
  ASSERT_TRUE(harness->Run({{sequence_a.get(), 0, 49, 0}, {sequence_c.get(), 0, 20, 0}}).ok());
  // A decode, a whole prompt and the rest of a prompt in one step.
  const auto logits = harness->Run(
      {{sequence_a.get(), 49, 1, 1}, {sequence_b.get(), 0, 33, 33}, {sequence_c.get(), 20, 44, 2}});
  ASSERT_TRUE(logits.ok()) << logits.status();
  ExpectSameBits(Rows(*logits, 0, 1), Rows(Alone(a), 49, 50));
  ExpectSameBits(Rows(*logits, 1, 34), Alone(b));
  ExpectSameBits(Rows(*logits, 34, 36), Rows(Alone(c), 62, 64));
}

TEST_P(RunnerScheduleTest, ACopiedBlockEqualsAComputedOne) {
  const std::vector<int32_t> first = Prompt(40, 9);
  std::vector<int32_t> second(first.begin(), first.begin() + 27);  // diverges inside block 1
  for (int i = 0; i < 20; ++i) second.push_back((i * 13 + 4) % 160);
  const std::unique_ptr<ModelHarness> harness = Make(2);
  const auto source = harness->NewSequence(first, 40);
  ASSERT_TRUE(harness->Run({{source.get(), 0, 40, 1}}).ok());

  const auto copy = harness->NewSequence(second, 47);
  std::vector<BlockCopy> copies;
  for (size_t group = 0; group < copy->block_tables.size(); ++group) {
    copy->block_tables[group][0] = source->block_tables[group][0];  // shared
    copies.push_back({.group = static_cast<int>(group),
                      .source = source->block_tables[group][1],
                      .destination = copy->block_tables[group][1],
                      .tokens = 11});
  }
  const auto logits = harness->Run({{copy.get(), 27, 20, 20}}, copies);
  ASSERT_TRUE(logits.ok()) << logits.status();
  ExpectSameBits(*logits, Rows(Alone(second), 27, 47));
  // The source was read, not changed.
  const auto again = harness->Run({{source.get(), 39, 1, 1}});
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSameBits(*again, Rows(Alone(first), 39, 40));
}

TEST_P(RunnerScheduleTest, BlocksThatTheWindowLeftBehindAreNotRead) {
  const std::vector<int32_t> tokens = Prompt(80, 11);
  const std::unique_ptr<ModelHarness> harness = Make(2);
  const auto sequence = harness->NewSequence(tokens, 80);
  ASSERT_TRUE(harness->Run({{sequence.get(), 0, 79, 0}}).ok());
  for (size_t group = 0; group < sequence->block_tables.size(); ++group) {
    const int window = harness->model().config.kv_groups[group].window;
    if (window == 0) continue;
    const size_t left_behind = static_cast<size_t>((79 - window + 1) / 16);
    for (size_t i = 0; i < left_behind; ++i) sequence->block_tables[group][i] = kNullBlock;
  }
  const auto logits = harness->Run({{sequence.get(), 79, 1, 1}});
  ASSERT_TRUE(logits.ok()) << logits.status();
  ExpectSameBits(*logits, Rows(Alone(tokens), 79, 80));
}

TEST_P(RunnerScheduleTest, LogitsAreFiniteAndDependOnTheTokens) {
  const std::vector<float> a = Alone(Prompt(30, 1));
  const std::vector<float> b = Alone(Prompt(30, 2));
  for (const float logit : a) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_NE(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(All, RunnerScheduleTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& param_info) {
                           const Case& c = param_info.param;
                           std::string name = std::string(c.kernels->name) + "_" + c.architecture +
                                              "_" + GetWeightFormat(c.format).name + "_" +
                                              (c.float_activations ? "float_" : "int8_") +
                                              DTypeName(c.kv_dtype);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace llm
