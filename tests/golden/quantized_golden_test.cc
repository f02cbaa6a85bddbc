// Checkpoints in low bits: their weights are the golden's dequantised ones, their logits those of
// the dequantised model, from the low bits themselves, and a pack of them answers with the same
// bits.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/loader/pack_reader.h"
#include "src/model/pack_writer.h"
#include "tests/golden/directory_golden.h"

namespace llm {
namespace {

constexpr const char* kCheckpoints[] = {"awq_int4_g128",
                                        "awq_int4_g32",
                                        "ct_fp8_block",
                                        "ct_fp8_dynamic_channel",
                                        "ct_fp8_static_tensor",
                                        "ct_mxfp4_a16",
                                        "ct_mxfp8_a16",
                                        "ct_nvfp4",
                                        "ct_sparse24_bf16",
                                        "ct_w4a16_asym_g32",
                                        "ct_w4a16_sym_g128",
                                        "ct_w8a16_channel",
                                        "ct_w8a8_int8",
                                        "deepseek_fp8_block",
                                        "gptq_int4_asym_g128_descact",
                                        "gptq_int4_asym_g32",
                                        "gptq_int4_sym_g128",
                                        "gptq_int4_sym_g32_descact",
                                        "gptq_int4_sym_gneg1",
                                        "gptq_int8_sym_g128",
                                        "gptq_v2_int4_asym_g128"};

// [rows, cols] with the inputs where the checkpoint has them.
std::vector<float> DequantisedOf(const WeightSource& source, const std::string& stem) {
  const std::vector<float> weight = Decoded(source, stem + ".weight");
  const std::vector<float> order = Decoded(source, stem + ".order");
  if (order.empty()) return weight;
  std::vector<float> values(weight.size());
  for (size_t i = 0; i < weight.size(); ++i) {
    const size_t row = i / order.size();
    values[row * order.size() + static_cast<size_t>(order[i % order.size()])] = weight[i];
  }
  return values;
}

class QuantizedGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = std::string(INLAY_SHARED_DATA "/quant/") + GetParam();
    if (!FileExists(folder_ + "/golden.json")) GTEST_SKIP() << folder_ << " is not here";
    source_ = OpenDirectory(folder_);
    ASSERT_NE(source_, nullptr);
    golden_ = ReadJson(folder_ + "/golden.json");
    ASSERT_FALSE(golden_.is_discarded());
  }

  std::string folder_;
  std::unique_ptr<WeightSource> source_;
  nlohmann::json golden_;
};

TEST_P(QuantizedGoldenTest, HoldsTheDequantisedValuesInLowBits) {
  constexpr std::pair<const char*, const char*> kLinears[] = {
      {"model.layers.0.self_attn.q_proj", "blk.0.attn_q"},
      {"model.layers.0.self_attn.k_proj", "blk.0.attn_k"},
      {"model.layers.0.mlp.down_proj", "blk.0.ffn_down"}};
  constexpr double kEpsilon = 1.2e-7;
  constexpr double kDigits = 5e-6 + kEpsilon;  // the file has 6, a product of f32 is rounded
  for (const auto& [hub, stem] : kLinears) {
    SCOPED_TRACE(hub);
    const nlohmann::json& golden = golden_["dequantised"][hub];
    const std::vector<float> values = DequantisedOf(*source_, stem);
    const auto rows = golden["shape"][0].get<size_t>();
    const auto cols = golden["shape"][1].get<size_t>();
    ASSERT_EQ(values.size(), rows * cols);
    // 9 bits, scales and masks included: nowhere expanded to floats.
    EXPECT_LE(source_->Find(std::string(stem) + ".weight")->size_bytes, values.size() * 9 / 8);
    const auto corner = golden["rows0_3_cols0_63"].get<std::vector<std::vector<double>>>();
    for (size_t row = 0; row < 4; ++row) {
      for (size_t col = 0; col < 64; ++col) {
        const double expected = corner[row][col];
        ASSERT_NEAR(double{values[row * cols + col]}, expected, kDigits * std::abs(expected))
            << row << ", " << col;
      }
    }
    double sum = 0, absolute = 0;
    for (const float value : values) {
      sum += double{value};
      absolute += std::abs(double{value});
    }
    EXPECT_NEAR(absolute, golden["abs_sum"].get<double>(), kDigits * absolute);
    EXPECT_NEAR(sum, golden["sum"].get<double>(), kDigits * std::abs(sum) + kEpsilon * absolute);
  }
}

TEST_P(QuantizedGoldenTest, LogitsEqualThoseOfTheDequantisedModel) {
  double worst = 0;
  for (const KernelTable* kernels : AvailableKernels()) {
    SCOPED_TRACE(kernels->name);
    auto harness = ModelHarness::Create(*source_, {.kernels = kernels, .num_threads = 2});
    ASSERT_TRUE(harness.ok()) << harness.status();
    for (const nlohmann::json& prompt : golden_["prompts"]) {
      worst = std::max(worst, CheckPrompt(golden_, prompt, harness->get()));
    }
  }
  RecordProperty("largest_error", std::to_string(worst));
}

// The tolerance is six standard deviations of one logit; here all of them together stay within half
// of it, which says more of their distribution and less of one model's largest error.
TEST_P(QuantizedGoldenTest, LogitsOfInt8ActivationsStayWithinTheirNoise) {
  for (const KernelTable* kernels : AvailableKernels()) {
    SCOPED_TRACE(kernels->name);
    auto harness = ModelHarness::Create(
        *source_, {.kernels = kernels, .num_threads = 2, .float_activations = false});
    ASSERT_TRUE(harness.ok()) << harness.status();
    const auto vocab = static_cast<size_t>((*harness)->model().config.vocab_size);
    for (const nlohmann::json& prompt : golden_["prompts"]) {
      const auto last = (*harness)->LastLogits(prompt["ids"].get<std::vector<int32_t>>());
      ASSERT_TRUE(last.ok()) << last.status();
      double squares = 0;
      for (size_t i = 0; i < vocab; ++i) {
        const double error = double{(*last)[i]} - prompt["last_logits"][i].get<double>();
        squares += error * error;
      }
      const double tolerance = Int8Tolerance(prompt, (*harness)->model().config.num_layers);
      EXPECT_LT(std::sqrt(squares / static_cast<double>(vocab)), tolerance / 2);
    }
  }
}

TEST_P(QuantizedGoldenTest, APackOfItGivesTheSameBits) {
  const KernelTable* kernels = BackendUnderTest();
  auto harness = ModelHarness::Create(*source_, {.kernels = kernels});
  ASSERT_TRUE(harness.ok()) << harness.status();
  const std::string path = testing::TempDir() + "/quantized_golden_" + GetParam() + ".pack";
  const absl::Status written = WritePack(*source_, (*harness)->model(), path,
                                         [](uint64_t, uint64_t) { return absl::OkStatus(); });
  ASSERT_TRUE(written.ok()) << written;
  absl::StatusOr<std::unique_ptr<ModelFile>> file = OpenModelFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<std::unique_ptr<WeightSource>> pack = OpenPack(*std::move(file), {});
  ASSERT_TRUE(pack.ok()) << pack.status();
  auto again = ModelHarness::Create(**pack, {.kernels = kernels});
  ASSERT_TRUE(again.ok()) << again.status();
  const auto ids = golden_["prompts"][0]["ids"].get<std::vector<int32_t>>();
  const auto logits = (*harness)->LastLogits(ids);
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(*logits, *(*again)->LastLogits(ids));
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedGoldenTest, testing::ValuesIn(kCheckpoints),
                         [](const testing::TestParamInfo<const char*>& param_info) {
                           return std::string(param_info.param);
                         });

}  // namespace
}  // namespace llm
