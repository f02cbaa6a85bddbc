// Models without batch_invariant, whose linear layers a device's library does, give the logits of
// another implementation, within what rounded activations move them.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/golden/directory_golden.h"

namespace llm {
namespace {

struct Case {
  const char* name;
  const char* model;  // a file of the test data, or a checkpoint of the shared data
  // What a linear layer's outputs are off by, of their rms. An element is rounded to a multiple of
  // its ulp: by ulp / sqrt(12) rms. Ulp is 2^-7 (bf16), 2^-10 (f16) or 2^-3 (e4m3) of the power of
  // two below the element, whose own rms is 1.47 of that. int8: the largest of some hundred normal
  // values is 3.2 of their rms, and ulp is a 127th of it.
  double noise;
  int sequences;  // computed in one step, so that the library has rows enough
};

constexpr Case kCases[] = {{"BF16", "llama_h64-BF16.gguf", 1.0 / 650, 1},
                           {"F16", "llama_h64-F16.gguf", 1.0 / 5200, 1},
                           {"F8_E4M3_channel", "ct_fp8_dynamic_channel", 1.0 / 41, 1},
                           {"F8_E4M3_tensor", "ct_fp8_static_tensor", 1.0 / 41, 1},
                           {"int8", "ct_w8a8_int8", 1.0 / 137, 4}};

class BatchedGoldenTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::string model = GetParam().model;
    if (model.find(".gguf") != std::string::npos) {
      const std::string path = INLAY_TEST_DATA "/gguf/" + model;
      source_ = OpenModel(path);
      golden_ = ReadJson(path.substr(0, path.size() - 5) + ".golden.json");
    } else {
      const std::string folder = INLAY_SHARED_DATA "/quant/" + model;
      if (!FileExists(folder + "/golden.json")) GTEST_SKIP() << folder << " is not here";
      source_ = OpenDirectory(folder);
      golden_ = ReadJson(folder + "/golden.json");
    }
    ASSERT_NE(source_, nullptr);
    ASSERT_FALSE(golden_.is_discarded());
  }
  std::unique_ptr<ModelHarness> Create() const {
    auto harness = ModelHarness::Create(*source_, {.kernels = AvailableKernels().front(),
                                                   .float_activations = false,
                                                   .batch_invariant = false,
                                                   .max_step_tokens = 640});
    EXPECT_TRUE(harness.ok()) << harness.status();
    return harness.ok() ? *std::move(harness) : nullptr;
  }
  // Of the last token of each of the sequences, which are all the same one.
  std::vector<float> LastLogits(const nlohmann::json& prompt, ModelHarness* harness) const {
    const auto ids = prompt["ids"].get<std::vector<int32_t>>();
    harness->Reset();
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<ScheduledChunk> chunks;
    for (int i = 0; i < GetParam().sequences; ++i) {
      sequences.push_back(harness->NewSequence(ids, static_cast<int>(ids.size())));
      chunks.push_back({.sequence = sequences.back().get(),
                        .begin = 0,
                        .length = static_cast<int32_t>(ids.size()),
                        .num_logits = 1});
    }
    const absl::StatusOr<std::vector<float>> logits = harness->Run(chunks);
    EXPECT_TRUE(logits.ok()) << logits.status();
    return logits.ok() ? *logits : std::vector<float>();
  }

  std::unique_ptr<WeightSource> source_;
  nlohmann::json golden_;
};

// As LogitsOfInt8ActivationsStayWithinTheirNoise has it: the rms of all within half of what is six
// standard deviations of one logit; of 16-bit activations, each logit too. Attention, whose weights
// rounding moves, is not in that estimate: the same rounding in numpy puts single logits of
// ct_fp8_static_tensor off by 1.1 of it, as here.
TEST_P(BatchedGoldenTest, LogitsAreWithinTheNoiseOfTheGolden) {
  const std::unique_ptr<ModelHarness> harness = Create();
  ASSERT_NE(harness, nullptr);
  const auto vocab = static_cast<size_t>(harness->model().config.vocab_size);
  double worst = 0;
  for (const nlohmann::json& prompt : golden_["prompts"]) {
    const std::vector<float> logits = LastLogits(prompt, harness.get());
    ASSERT_EQ(logits.size(), vocab * static_cast<size_t>(GetParam().sequences));
    const double tolerance =
        Int8Tolerance(prompt, harness->model().config.num_layers) * 150 * GetParam().noise;
    double squares = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected = prompt["last_logits"][i % vocab];
      const double error = double{logits[i]} - expected;
      if (GetParam().noise < 0.005) {
        ASSERT_LT(std::abs(error), tolerance + Tolerance(golden_, expected)) << "id " << i;
      }
      worst = std::max(worst, std::abs(error) / tolerance);
      squares += error * error;
    }
    EXPECT_LT(std::sqrt(squares / static_cast<double>(logits.size())), tolerance / 2);
  }
  RecordProperty("largest_error_of_tolerance", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(All, BatchedGoldenTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& param_info) {
                           return std::string(param_info.param.name);
                         });

}  // namespace
}  // namespace llm
