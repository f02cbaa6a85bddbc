// Real models give the logits and greedy tokens of transformers. The golden continuation is fed
// back in, so that every position is checked, also behind a near tie. INLAY_SMOLLM2 and
// INLAY_GEMMA3 are paths of the files; INLAY_BACKEND names a backend.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/golden/golden_util.h"
#include "tests/support/model_harness.h"

namespace llm {
namespace {

// What is compared of one mode of arithmetic. A greedy token must equal the golden one wherever the
// golden margin exceeds `margin`.
struct Mode {
  DType kv_dtype;
  bool float_activations;
  double logit_error;  // largest difference of the last token's 20 best logits
  double margin;
};

// f32 rounding over 30 layers, and 6 digits of a logit up to 30 in the file. The margin is
// 1e-3.
constexpr Mode kFloat = {DType::kF32, true, 5e-4, 1e-3};

// What int8 groups of 32 cost. Seen: logits off by 0.53 (SmolLM2) and 0.32 (Gemma 3), and no greedy
// token lost whose margin was above 0.18 and 0.02.
constexpr Mode kInt8 = {DType::kF16, false, 0.75, 0.5};

class RealModelTest : public testing::Test {
 protected:
  // Skips, and returns false, when the model is not at hand.
  bool Open(const std::string& model_path, const std::string& golden_path, const Mode& mode) {
    mode_ = mode;
    golden_ = ReadJson(golden_path);
    source_ = OpenModel(model_path);
    if (source_ == nullptr || golden_.is_discarded()) {
      ADD_FAILURE() << "cannot read " << model_path << " or " << golden_path;
      return false;
    }
    const KernelTable* kernels = BackendUnderTest();
    auto harness = ModelHarness::Create(*source_, {.kernels = kernels,
                                                   .num_threads = 2,
                                                   .kv_dtype = mode.kv_dtype,
                                                   .float_activations = mode.float_activations,
                                                   .max_step_tokens = kChunk,
                                                   .max_sequences = 1,
                                                   .max_logit_rows = kChunk,
                                                   .max_context = 1024,
                                                   .num_blocks = 64});
    if (!harness.ok()) {
      ADD_FAILURE() << harness.status();
      return false;
    }
    harness_ = *std::move(harness);
    return true;
  }

  void CheckPrompts() {
    for (const nlohmann::json& prompt : golden_["prompts"]) {
      SCOPED_TRACE(prompt["name"].get<std::string>());
      CheckPrompt(prompt);
    }
    std::printf(
        "largest error of a logit %.3g, of a log-probability %.3g; %d greedy tokens compared, "
        "%d below the margin; largest margin that was lost %.3g\n",
        logit_error_, logprob_error_, compared_, skipped_, lost_margin_);
    EXPECT_LE(logit_error_, mode_.logit_error);
  }

  void CheckPrompt(const nlohmann::json& prompt) {
    auto tokens = prompt["ids"].get<std::vector<int32_t>>();
    const auto greedy = prompt["greedy"].get<std::vector<int32_t>>();
    num_prompt_ = tokens.size();
    tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
    harness_->Reset();
    const auto sequence = harness_->NewSequence(tokens, static_cast<int>(tokens.size()));
    for (int32_t begin = 0; begin < sequence->num_tokens(); begin += kChunk) {
      const int32_t length = std::min(kChunk, sequence->num_tokens() - begin);
      StepPlan plan;
      plan.chunks = {{sequence.get(), begin, length, length}};
      plan.num_tokens = length;
      const absl::StatusOr<StepLogits> logits = harness_->runner().Execute(plan);
      ASSERT_TRUE(logits.ok()) << logits.status();
      for (int32_t i = 0; i < length; ++i) CheckRow(prompt, *sequence, begin + i, *logits, i);
    }
  }

  void CheckRow(const nlohmann::json& prompt, const Sequence& sequence, int32_t position,
                const StepLogits& step, int32_t row) {
    const auto index = static_cast<size_t>(position);
    const float* logits = step.logits + row * step.vocab_size;
    const float log_sum_exp = step.log_sum_exp[static_cast<size_t>(row)];
    if (index + 1 < num_prompt_) {
      const double expected = prompt["next_logprob"][index];
      const double actual = logits[sequence.tokens[index + 1]] - log_sum_exp;
      logprob_error_ = std::max(logprob_error_, std::abs(actual - expected));
      return;
    }
    if (index + 1 == num_prompt_) {
      for (const nlohmann::json& top : prompt["last_top20"]) {
        const double error = std::abs(logits[top[0].get<int>()] - top[2].get<double>());
        logit_error_ = std::max(logit_error_, error);
      }
    }
    const size_t step_index = index + 1 - num_prompt_;
    const int32_t expected = prompt["greedy"][step_index];
    const double margin = prompt["greedy_margin"][step_index];
    const int32_t actual = step.argmax[static_cast<size_t>(row)];
    if (actual != expected) lost_margin_ = std::max(lost_margin_, margin);
    if (margin <= mode_.margin) {
      ++skipped_;
      return;
    }
    ++compared_;
    EXPECT_EQ(actual, expected) << "greedy token " << step_index << ", golden margin " << margin;
  }

  static constexpr int32_t kChunk = 64;

  Mode mode_{};
  nlohmann::json golden_;
  std::unique_ptr<WeightSource> source_;
  std::unique_ptr<ModelHarness> harness_;
  size_t num_prompt_ = 0;
  double logit_error_ = 0;
  double logprob_error_ = 0;
  double lost_margin_ = 0;
  int compared_ = 0;
  int skipped_ = 0;
};

const std::string kReal = INLAY_SHARED_DATA "/real/";

#define LLM_SKIP_WITHOUT_MODEL(env, golden)                                                  \
  if (std::getenv(env) == nullptr) GTEST_SKIP() << env << " does not give the model's path"; \
  if (!FileExists(golden)) GTEST_SKIP() << golden << " is not here"

TEST_F(RealModelTest, Smollm2WithFloatActivationsEqualsTheGolden) {
  const std::string golden = kReal + "smollm2-135m-instruct-q4_1.golden.json";
  LLM_SKIP_WITHOUT_MODEL("INLAY_SMOLLM2", golden);
  if (Open(std::getenv("INLAY_SMOLLM2"), golden, kFloat)) CheckPrompts();
}

TEST_F(RealModelTest, Smollm2WithInt8ActivationsEqualsTheGoldenWhereTheMarginIsLarge) {
  const std::string golden = kReal + "smollm2-135m-instruct-q4_1.golden.json";
  LLM_SKIP_WITHOUT_MODEL("INLAY_SMOLLM2", golden);
  if (Open(std::getenv("INLAY_SMOLLM2"), golden, kInt8)) CheckPrompts();
}

TEST_F(RealModelTest, Gemma3WithFloatActivationsEqualsTheGolden) {
  const std::string golden = kReal + "gemma-3-270m-q4_k_m.golden.json";
  LLM_SKIP_WITHOUT_MODEL("INLAY_GEMMA3", golden);
  if (Open(std::getenv("INLAY_GEMMA3"), golden, kFloat)) CheckPrompts();
}

TEST_F(RealModelTest, Gemma3WithInt8ActivationsEqualsTheGoldenWhereTheMarginIsLarge) {
  const std::string golden = kReal + "gemma-3-270m-q4_k_m.golden.json";
  LLM_SKIP_WITHOUT_MODEL("INLAY_GEMMA3", golden);
  if (Open(std::getenv("INLAY_GEMMA3"), golden, kInt8)) CheckPrompts();
}

TEST_F(RealModelTest, ATrainedModelOfFiveMillionWeightsEqualsTheGolden) {
  const std::string model = kReal + "trained-5m.bf16.gguf";
  if (!FileExists(model)) GTEST_SKIP() << model << " is not here";
  if (Open(model, kReal + "trained-5m/golden.json", kFloat)) CheckPrompts();
}

}  // namespace
}  // namespace llm
