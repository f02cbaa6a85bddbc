// Tiny GGUF models of every weight format give the logits that transformers gives, on every
// backend.
#include <string>
#include <vector>

#include "tests/golden/golden_util.h"
#include "tests/golden/hf_model.h"
#include "tests/support/model_harness.h"

namespace llm {
namespace {

struct TinyCase {
  std::string model;
  const KernelTable* kernels;
};

std::vector<TinyCase> TinyCases() {
  std::vector<TinyCase> cases;
  for (const KernelTable* kernels : AvailableKernels()) {
    for (const char* model :
         {"h64-F32", "h64-F16", "h64-BF16", "h64-Q8_0", "h64-Q4_0", "h64-Q4_1", "h64-Q5_0",
          "h64-Q5_1", "h64-IQ4_NL", "h64-MXFP4", "h256-KMIX_A", "h256-KMIX_B", "h256-KMIX_C"}) {
      cases.push_back({std::string("gguf/llama_") + model, kernels});
    }
  }
  return cases;
}

class TinyModelTest : public testing::TestWithParam<TinyCase> {};

// Another order of additions moves a logit by a small multiple of what f32 itself moves it from
// f64; the file has 6 digits.
double Tolerance(const nlohmann::json& golden, double value) {
  return 20 * golden.value("f32_vs_f64_max_abs", 1e-5) + 1e-5 * std::abs(value);
}

void ExpectPromptEquals(const nlohmann::json& golden, const nlohmann::json& prompt,
                        ModelHarness* harness) {
  const auto vocab = static_cast<size_t>(harness->model().config.vocab_size);
  const auto n = prompt["ids"].size();
  auto tokens = prompt["ids"].get<std::vector<int32_t>>();
  const auto greedy = prompt["greedy"].get<std::vector<int32_t>>();
  tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
  harness->Reset();
  const std::unique_ptr<Sequence> sequence =
      harness->NewSequence(tokens, static_cast<int>(tokens.size()));
  const absl::StatusOr<std::vector<float>> logits =
      harness->LogitsOfAll(sequence.get(), harness->model().config.context_length);
  ASSERT_TRUE(logits.ok()) << logits.status();

  for (size_t i = 0; i < vocab; ++i) {
    const double expected = prompt["last_logits"][i];
    ASSERT_NEAR((*logits)[(n - 1) * vocab + i], expected, Tolerance(golden, expected))
        << "id " << i;
  }
  for (size_t i = 0; i + 1 < n; ++i) {
    const float* row = logits->data() + i * vocab;
    const double expected = prompt["next_logprob"][i];
    EXPECT_NEAR(row[tokens[i + 1]] - LogSumExp(row, vocab), expected, Tolerance(golden, expected));
  }
  for (size_t i = 0; i < greedy.size(); ++i) {
    if (prompt["greedy_margin"][i] < 1e-3) continue;
    const float* row = logits->data() + (n - 1 + i) * vocab;
    EXPECT_EQ(std::max_element(row, row + vocab) - row, greedy[i]) << "greedy token " << i;
  }
}

void ExpectModelEquals(const WeightSource& source, const std::string& golden_path,
                       const KernelTable* kernels) {
  const nlohmann::json golden = ReadJson(golden_path);
  ASSERT_FALSE(golden.is_discarded()) << golden_path;
  auto harness = ModelHarness::Create(source, {.kernels = kernels, .num_threads = 2});
  ASSERT_TRUE(harness.ok()) << harness.status();
  ASSERT_FALSE(golden["prompts"].empty());
  for (const nlohmann::json& prompt : golden["prompts"]) {
    ExpectPromptEquals(golden, prompt, harness->get());
  }
}

void ExpectInt8LogitsNear(const WeightSource& source, const std::string& golden_path,
                          const KernelTable* kernels) {
  const nlohmann::json golden = ReadJson(golden_path);
  ASSERT_FALSE(golden.is_discarded()) << golden_path;
  auto harness = ModelHarness::Create(
      source, {.kernels = kernels, .num_threads = 2, .float_activations = false});
  ASSERT_TRUE(harness.ok()) << harness.status();
  const auto vocab = static_cast<size_t>((*harness)->model().config.vocab_size);
  for (const nlohmann::json& prompt : golden["prompts"]) {
    const auto ids = prompt["ids"].get<std::vector<int32_t>>();
    const auto last = (*harness)->LastLogits(ids);
    ASSERT_TRUE(last.ok()) << last.status();
    const double tolerance =
        Int8Tolerance(prompt, static_cast<int>((*harness)->model().config.num_layers));
    for (size_t i = 0; i < vocab; ++i)
      EXPECT_NEAR((*last)[i], prompt["last_logits"][i].get<double>(), tolerance) << "id " << i;
    if (prompt["greedy_margin"][0] > 2 * tolerance) {
      EXPECT_EQ(std::max_element(last->begin(), last->end()) - last->begin(), prompt["greedy"][0]);
    }
  }
}

TEST_P(TinyModelTest, LogitsEqualTheGolden) {
  const std::string base = std::string(INLAY_TEST_DATA "/") + GetParam().model;
  const std::unique_ptr<WeightSource> source = OpenModel(base + ".gguf");
  ASSERT_NE(source, nullptr);
  ExpectModelEquals(*source, base + ".golden.json", GetParam().kernels);
}

TEST_P(TinyModelTest, LogitsOfInt8ActivationsStayWithinTheirNoise) {
  const std::string base = std::string(INLAY_TEST_DATA "/") + GetParam().model;
  const std::unique_ptr<WeightSource> source = OpenModel(base + ".gguf");
  ASSERT_NE(source, nullptr);
  ExpectInt8LogitsNear(*source, base + ".golden.json", GetParam().kernels);
}

INSTANTIATE_TEST_SUITE_P(All, TinyModelTest, testing::ValuesIn(TinyCases()),
                         [](const testing::TestParamInfo<TinyCase>& param_info) {
                           return std::string(param_info.param.kernels->name) + "_" +
                                  param_info.param.model.substr(param_info.param.model.find('-') +
                                                                1);
                         });

// Models of the test data by folder name; INLAY_SHARED_DATA may be absent.
class SharedModelTest : public testing::TestWithParam<const char*> {
 protected:
  std::string golden() const {
    return std::string(INLAY_SHARED_DATA "/models/") + GetParam() + "/golden.json";
  }
  void ExpectEqualOnAllBackends(const WeightSource& source) {
    for (const KernelTable* kernels : AvailableKernels()) {
      SCOPED_TRACE(kernels->name);
      ExpectModelEquals(source, golden(), kernels);
    }
  }
};

std::string ModelName(const testing::TestParamInfo<const char*>& param_info) {
  return param_info.param;
}

// Files of llama.cpp's converter: rows of q and k permuted, tensors and keys as it names them.
class ConvertedModelTest : public SharedModelTest {};

TEST_P(ConvertedModelTest, LogitsEqualTheGolden) {
  const std::string model =
      std::string(INLAY_SHARED_DATA "/gguf/converted/") + GetParam() + ".gguf";
  if (!FileExists(model)) GTEST_SKIP() << model << " is not here";
  const std::unique_ptr<WeightSource> source = OpenModel(model);
  ASSERT_NE(source, nullptr);
  ExpectEqualOnAllBackends(*source);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertedModelTest,
                         testing::Values("llama_rope_llama3_sharded", "qwen2", "qwen3", "qwen3_moe",
                                         "gpt_oss_mxfp4", "deepseek_v3"),
                         ModelName);

// Checkpoints of Hugging Face in GGUF's vocabulary, rows of q and k as they were.
class HfModelTest : public SharedModelTest {};

TEST_P(HfModelTest, LogitsEqualTheGolden) {
  if (!FileExists(golden())) GTEST_SKIP() << golden() << " is not here";
  const absl::StatusOr<FakeWeightSource> source =
      HfModel(std::string(INLAY_SHARED_DATA "/models/") + GetParam());
  ASSERT_TRUE(source.ok()) << source.status();
  ExpectEqualOnAllBackends(*source);
}

INSTANTIATE_TEST_SUITE_P(All, HfModelTest,
                         testing::Values("llama", "llama_tied_bias", "llama_rope_linear",
                                         "llama_yarn", "mistral_swa", "mixtral", "qwen2", "qwen3",
                                         "qwen3_moe", "gemma2", "gemma3_text",
                                         "gemma3_text_ropescale", "phi3_swa", "phi3_longrope",
                                         "gpt_oss_bf16", "deepseek_v2_lite", "deepseek_v2_group",
                                         "deepseek_v3"),
                         ModelName);

}  // namespace
}  // namespace llm
