// Embeddings equal the hidden states that other implementations compute: numpy in f64 for the tiny
// Llama, transformers for the real models (INLAY_SMOLLM2 and INLAY_GEMMA3 are paths of the files).
#include <cmath>

#include "kernels/kernel_table.h"
#include "src/engine/open_engine.h"
#include "tests/golden/golden_util.h"

namespace llm {
namespace {

// In f32 throughout.
std::unique_ptr<Engine> OpenFloat(const std::string& path, const char* kernels) {
  ModelOptions model_options;
  model_options.kernels = kernels;
  model_options.float_activations = true;
  const auto model = LoadedModel::Open(path, model_options);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return nullptr;
  OpenOptions options;
  options.manual = true;
  options.num_threads = 2;
  options.kv_dtype = DType::kF32;
  options.kv_tokens = 256;
  options.max_step_tokens = 64;
  auto engine = OpenEngine(*model, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::vector<float> Embed(Engine* engine, const std::vector<int32_t>& ids, Pooling pooling,
                         bool normalize) {
  EmbedSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.ids = ids;
  spec.pooling = pooling;
  spec.normalize = normalize;
  const auto values = engine->Embed(spec);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.value_or(std::vector<float>());
}

double Length(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// A sum of K products in f32 is off by some sqrt(K) * 2^-24 of an element's share of the row's
// norm, norm / sqrt(K); each sublayer adds one such error to the stream. Eight times that.
double Tolerance(double row_norm, int sublayers) {
  return 8 * std::sqrt(static_cast<double>(sublayers)) * std::ldexp(1.0, -24) * row_norm;
}

TEST(EmbeddingGoldenTest, TheTinyLlamaPoolsTheStatesThatNumpyComputes) {
  const std::string base = INLAY_TEST_DATA "/gguf/llama_h64-F32";
  const nlohmann::json golden = ReadJson(base + ".embedding.json");
  ASSERT_EQ(golden["prompts"].size(), 3u);
  for (const KernelTable* kernels : AvailableKernels()) {
    SCOPED_TRACE(kernels->name);
    const std::unique_ptr<Engine> engine = OpenFloat(base + ".gguf", kernels->name);
    ASSERT_NE(engine, nullptr);
    for (const nlohmann::json& prompt : golden["prompts"]) {
      const auto ids = prompt["ids"].get<std::vector<int32_t>>();
      for (const bool mean : {true, false}) {
        const auto expected = prompt[mean ? "mean" : "last"].get<std::vector<double>>();
        const double length = Length(expected);
        const Pooling pooling = mean ? Pooling::kMean : Pooling::kLast;
        const std::vector<float> raw = Embed(engine.get(), ids, pooling, false);
        const std::vector<float> unit = Embed(engine.get(), ids, pooling, true);
        ASSERT_EQ(raw.size(), expected.size());
        // The norm of a state, which is what each row of the mean is off by.
        const double tolerance = Tolerance(8.2, 4);
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_NEAR(raw[i], expected[i], tolerance) << i;
          EXPECT_NEAR(unit[i], expected[i] / length, tolerance / length) << i;
        }
      }
    }
  }
}

struct RealCase {
  const char* env;
  const char* golden;
  int hidden_size;
  int sublayers;
};

void ExpectLastStateEquals(const RealCase& real) {
  const std::string path = std::string(INLAY_SHARED_DATA "/real/") + real.golden;
  if (std::getenv(real.env) == nullptr || !FileExists(path)) {
    GTEST_SKIP() << "needs " << real.env << " and shared/data";
  }
  const nlohmann::json golden = ReadJson(path);
  const std::unique_ptr<Engine> engine = OpenFloat(std::getenv(real.env), "");
  ASSERT_NE(engine, nullptr);
  const nlohmann::json& state = golden["hidden_states_plain_last_pos"].back();
  for (const nlohmann::json& prompt : golden["prompts"]) {
    if (prompt["name"] != "plain") continue;
    const auto ids = prompt["ids"].get<std::vector<int32_t>>();
    const std::vector<float> last = Embed(engine.get(), ids, Pooling::kLast, false);
    ASSERT_EQ(last.size(), static_cast<size_t>(real.hidden_size));
    const double length = state["l2"];
    const double tolerance = Tolerance(length, real.sublayers);
    // Six digits in the file.
    const std::vector<double> values(last.begin(), last.end());
    EXPECT_NEAR(Length(values), length, tolerance + 1e-5 * length);
    for (size_t i = 0; i < 8; ++i) {
      const double expected = state["first8"][i];
      EXPECT_NEAR(values[i], expected, tolerance + 1e-5 * std::abs(expected)) << i;
    }
  }
}

TEST(EmbeddingGoldenTest, Smollm2GivesTheLastStateOfTransformers) {
  ExpectLastStateEquals({"INLAY_SMOLLM2", "smollm2-135m-instruct-q4_1.golden.json", 576, 60});
}

TEST(EmbeddingGoldenTest, Gemma3GivesTheLastStateOfTransformers) {
  ExpectLastStateEquals({"INLAY_GEMMA3", "gemma-3-270m-q4_k_m.golden.json", 640, 36});
}

}  // namespace
}  // namespace llm
