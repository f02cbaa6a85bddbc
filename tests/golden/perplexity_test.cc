// Perplexity of a text, by the protocol of shared/data/text/golden.json, on the ids that the golden
// was computed on (its tokenizer splits a few spaces and digits otherwise than ours, which
// tokenizer_golden_test holds to the models' own). Minutes long: runs with INLAY_FULL=1 only.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/golden/golden_util.h"
#include "tests/support/model_harness.h"

namespace llm {
namespace {

constexpr int32_t kChunk = 64;

struct Mode {
  DType kv_dtype;
  bool float_activations;
  double relative_error;  // of the perplexity
};
constexpr Mode kFloat = {DType::kF32, true, 0.003};
constexpr Mode kInt8 = {DType::kF16, false, 0.01};

// Sum of negative log-likelihoods of the second half of the window.
double ScoreWindow(const std::vector<int32_t>& window, ModelHarness* harness) {
  harness->Reset();
  const auto sequence = harness->NewSequence(window, static_cast<int>(window.size()));
  double sum = 0;
  for (int32_t begin = 0; begin < sequence->num_tokens(); begin += kChunk) {
    // The row before the first scored position is in the first half.
    const bool scored = begin + kChunk >= sequence->num_tokens() / 2;
    StepPlan plan;
    plan.chunks = {{sequence.get(), begin, kChunk, scored ? kChunk : 0}};
    plan.num_tokens = kChunk;
    const absl::StatusOr<StepLogits> step = harness->runner().Execute(plan);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return NAN;
    for (int64_t row = 0; row < step->rows; ++row) {
      const auto target = static_cast<size_t>(begin + row + 1);
      if (target < window.size() / 2 || target >= window.size()) continue;
      sum += static_cast<double>(step->log_sum_exp[static_cast<size_t>(row)]) -
             static_cast<double>(step->logits[row * step->vocab_size + window[target]]);
    }
  }
  return sum;
}

void ExpectPerplexity(const std::string& model_path, const std::string& name, const Mode& mode) {
  const std::string folder = INLAY_SHARED_DATA "/text/";
  const nlohmann::json all = ReadJson(folder + "golden.json");
  const nlohmann::json& golden = all["models"][name];
  const std::unique_ptr<WeightSource> source = OpenModel(model_path);
  ASSERT_NE(source, nullptr);
  const std::vector<int32_t> ids =
      ReadJson(INLAY_TEST_DATA "/text/perplexity_ids.json")[name].get<std::vector<int32_t>>();
  const auto first_ids = golden["first_ids"].get<std::vector<int32_t>>();
  ASSERT_TRUE(std::equal(first_ids.begin(), first_ids.end(), ids.begin()));

  const auto context = all["context"].get<size_t>();
  const KernelTable* kernels = BackendUnderTest();
  auto harness = ModelHarness::Create(*source, {.kernels = kernels,
                                                .num_threads = 2,
                                                .kv_dtype = mode.kv_dtype,
                                                .float_activations = mode.float_activations,
                                                .max_step_tokens = kChunk,
                                                .max_sequences = 1,
                                                .max_logit_rows = kChunk,
                                                .max_context = static_cast<int>(context)});
  ASSERT_TRUE(harness.ok()) << harness.status();
  double sum = 0;
  auto next = ids.begin();
  const auto windows = all["windows"].get<size_t>();
  for (size_t i = 0; i < windows; ++i) {
    std::vector<int32_t> window;
    if (!golden["bos"].is_null()) window.push_back(golden["bos"]);
    const auto count = static_cast<std::ptrdiff_t>(context - window.size());
    window.insert(window.end(), next, next + count);
    next += count;
    const double window_sum = ScoreWindow(window, harness->get());
    sum += window_sum;
    EXPECT_NEAR(window_sum / static_cast<double>(context / 2),
                golden["per_window_mean_nll"][i].get<double>(), 5 * mode.relative_error)
        << "window " << i;
  }
  const double perplexity = std::exp(sum / static_cast<double>(windows * context / 2));
  const double expected = golden["perplexity"];
  std::printf("%s on %s: perplexity %.5f, float32 golden %.5f, %+.4f %%\n", name.c_str(),
              kernels->name, perplexity, expected, 100 * (perplexity / expected - 1));
  EXPECT_NEAR(perplexity / expected, 1.0, mode.relative_error);
}

#define LLM_SKIP_UNLESS_FULL(env)                                                            \
  if (std::getenv("INLAY_FULL") == nullptr)                                                  \
    GTEST_SKIP() << "INLAY_FULL is not set: takes minutes";                                  \
  if (std::getenv(env) == nullptr) GTEST_SKIP() << env << " does not give the model's path"; \
  if (!FileExists(INLAY_SHARED_DATA "/text/golden.json"))                                    \
  GTEST_SKIP() << "shared/data is not "                                                      \
                  "here"

TEST(PerplexityTest, OfSmollm2WithFloatActivationsIsWithinAThirdOfAPercent) {
  LLM_SKIP_UNLESS_FULL("INLAY_SMOLLM2");
  ExpectPerplexity(std::getenv("INLAY_SMOLLM2"), "smollm2", kFloat);
}

TEST(PerplexityTest, OfSmollm2WithInt8ActivationsIsWithinOnePercent) {
  LLM_SKIP_UNLESS_FULL("INLAY_SMOLLM2");
  ExpectPerplexity(std::getenv("INLAY_SMOLLM2"), "smollm2", kInt8);
}

TEST(PerplexityTest, OfGemma3WithFloatActivationsIsWithinAThirdOfAPercent) {
  LLM_SKIP_UNLESS_FULL("INLAY_GEMMA3");
  ExpectPerplexity(std::getenv("INLAY_GEMMA3"), "gemma3", kFloat);
}

TEST(PerplexityTest, OfGemma3WithInt8ActivationsIsWithinOnePercent) {
  LLM_SKIP_UNLESS_FULL("INLAY_GEMMA3");
  ExpectPerplexity(std::getenv("INLAY_GEMMA3"), "gemma3", kInt8);
}

}  // namespace
}  // namespace llm
