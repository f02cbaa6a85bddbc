// Whole model files: every tensor decoded and compared with what another implementation read from
// the same file.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/quant/weight_format.h"
#include "nlohmann/json.hpp"
#include "src/loader/gguf_reader.h"

namespace llm {
namespace {

using nlohmann::json;

absl::StatusOr<std::unique_ptr<WeightSource>> OpenPath(const std::string& path) {
  absl::StatusOr<std::unique_ptr<ModelFile>> file = OpenModelFile(path);
  if (!file.ok()) return file.status();
  return OpenGguf(*std::move(file), {});
}

json ReadJson(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return json::parse(in, nullptr, false);
}

// The goldens are printed with 6 significant digits: half a unit of the last one.
double PrintedError(double golden) {
  return golden == 0 ? 0 : 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(golden))) - 5);
}

std::vector<float> DecodeTensor(const WeightSource& source, const TensorInfo& tensor) {
  int64_t count = 1;
  for (int64_t dim : tensor.shape) count *= dim;
  std::vector<char> bytes(tensor.size_bytes);
  EXPECT_TRUE(source.Read(tensor, 0, tensor.size_bytes, bytes.data()).ok()) << tensor.name;
  std::vector<float> values(static_cast<size_t>(count));
  GetWeightFormat(tensor.format).decode(bytes.data(), count, values.data());
  return values;
}

void ExpectValuesOfGolden(const std::vector<float>& values, const json& golden) {
  double sum = 0;
  double abs_sum = 0;
  for (float value : values) {
    sum += static_cast<double>(value);
    abs_sum += std::abs(static_cast<double>(value));
  }
  // Both sides add in float64; the order is not known.
  const double order_error = abs_sum * 1e-13;
  const double golden_sum = golden["sum"];
  const double golden_abs_sum = golden["abs_sum"];
  EXPECT_NEAR(sum, golden_sum, PrintedError(golden_sum) + order_error);
  EXPECT_NEAR(abs_sum, golden_abs_sum, PrintedError(golden_abs_sum) + order_error);
  const json& first = golden["first8"];
  for (size_t i = 0; i < first.size(); ++i) {
    const double expected = first[i];
    EXPECT_NEAR(static_cast<double>(values[i]), expected, PrintedError(expected) * 1.001) << i;
  }
}

// `goldens`: tensor name -> shape, sum, abs_sum, first8.
void ExpectTensorsOfGolden(const WeightSource& source, const json& goldens) {
  ASSERT_TRUE(goldens.is_object());
  EXPECT_EQ(source.tensors().size(), goldens.size());
  for (const auto& [name, golden] : goldens.items()) {
    SCOPED_TRACE(name);
    const TensorInfo* tensor = source.Find(name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->shape, golden["shape"].get<std::vector<int64_t>>());
    ExpectValuesOfGolden(DecodeTensor(source, *tensor), golden);
  }
}

class TinyModelTest : public testing::TestWithParam<const char*> {};

TEST_P(TinyModelTest, HasTheTensorsOfTheGolden) {
  const std::string name = GetParam();
  const std::string base = INLAY_TEST_DATA "/gguf/llama_" + name.substr(0, name.find('_')) + "-" +
                           name.substr(name.find('_') + 1);
  auto source = OpenPath(base + ".gguf");
  ASSERT_TRUE(source.ok()) << source.status();
  const json golden = ReadJson(base + ".golden.json");
  for (const TensorInfo& tensor : (*source)->tensors()) {
    EXPECT_EQ(GetWeightFormat(tensor.format).name, golden["tensor_types"][tensor.name]);
  }
  ExpectTensorsOfGolden(**source, golden["tensors"]);
}

INSTANTIATE_TEST_SUITE_P(All, TinyModelTest,
                         testing::Values("h64_F32", "h64_F16", "h64_BF16", "h64_Q8_0", "h64_Q4_0",
                                         "h64_Q4_1", "h64_Q5_0", "h64_Q5_1", "h64_IQ4_NL",
                                         "h64_MXFP4", "h256_KMIX_A", "h256_KMIX_B", "h256_KMIX_C"),
                         [](const auto& param) { return std::string(param.param); });

struct RealModel {
  const char* name;
  const char* path_variable;  // of the environment: where the file is
  const char* golden;         // below the shared data
  const char* architecture;
  size_t vocab_size;
};

class RealModelTest : public testing::TestWithParam<RealModel> {};

TEST_P(RealModelTest, HasTheTensorsOfTheGolden) {
  const RealModel& model = GetParam();
  const char* path = std::getenv(model.path_variable);
  if (path == nullptr) GTEST_SKIP() << model.path_variable << " (path of the file) is not set";
  const std::string golden = std::string(INLAY_SHARED_DATA "/real/") + model.golden;
  if (!std::ifstream(golden)) GTEST_SKIP() << golden << " is not there";
  auto source = OpenPath(path);
  ASSERT_TRUE(source.ok()) << source.status();
  const Metadata& metadata = (*source)->metadata();
  EXPECT_EQ(metadata.GetString("general.architecture").value(), model.architecture);
  EXPECT_EQ(metadata.GetStrings("tokenizer.ggml.tokens").value().size(), model.vocab_size);
  ExpectTensorsOfGolden(**source, ReadJson(golden));
}

INSTANTIATE_TEST_SUITE_P(
    All, RealModelTest,
    testing::Values(RealModel{"SmolLM2", "INLAY_SMOLLM2", "smollm2-135m-instruct-q4_1.tensors.json",
                              "llama", 49152},
                    RealModel{"Gemma3", "INLAY_GEMMA3", "gemma-3-270m-q4_k_m.tensors.json",
                              "gemma3", 262144}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace llm
