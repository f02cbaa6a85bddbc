// Model directories of a hub give the logits, ids and texts that transformers and tokenizers give.
#include "tests/golden/directory_golden.h"

#include <filesystem>
#include <string>
#include <vector>

#include "src/engine/loaded_model.h"

namespace llm {
namespace {

constexpr const char* kModels[] = {"llama",
                                   "llama_tied_bias",
                                   "llama_rope_llama3_sharded",
                                   "llama_rope_linear",
                                   "llama_yarn",
                                   "mistral_swa",
                                   "mixtral",
                                   "qwen2",
                                   "qwen3",
                                   "qwen3_moe",
                                   "gemma2",
                                   "gemma3_text",
                                   "gemma3_text_ropescale",
                                   "phi3_swa",
                                   "phi3_longrope",
                                   "gpt_oss_bf16",
                                   "gpt_oss_mxfp4",
                                   "deepseek_v2_lite",
                                   "deepseek_v2_group",
                                   "deepseek_v3"};

std::string Folder(const std::string& model) { return INLAY_SHARED_DATA "/models/" + model; }

class DirectoryTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = Folder(GetParam());
    if (!FileExists(folder_ + "/golden.json")) GTEST_SKIP() << folder_ << " is not here";
  }

  // A copy of the directory whose config.json is `config`.
  std::string CopyWith(const std::string& config) {
    namespace fs = std::filesystem;
    const std::string copy = testing::TempDir() + "/directory_golden_" + GetParam();
    fs::remove_all(copy);
    fs::create_directory(copy);
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name.find("config") == std::string::npos) fs::copy(entry.path(), copy + "/" + name);
    }
    fs::copy_file(folder_ + "/tokenizer_config.json", copy + "/tokenizer_config.json");
    fs::copy_file(folder_ + "/generation_config.json", copy + "/generation_config.json");
    fs::copy_file(folder_ + "/" + config, copy + "/config.json");
    return copy;
  }

  std::string folder_;
};

TEST_P(DirectoryTest, LogitsEqualTheGolden) {
  const std::unique_ptr<WeightSource> source = OpenDirectory(folder_);
  ASSERT_NE(source, nullptr);
  const nlohmann::json golden = ReadJson(folder_ + "/golden.json");
  ASSERT_FALSE(golden.is_discarded());
  double worst = 0;
  for (const KernelTable* kernels : AvailableKernels()) {
    SCOPED_TRACE(kernels->name);
    auto harness = ModelHarness::Create(*source, {.kernels = kernels, .num_threads = 2});
    ASSERT_TRUE(harness.ok()) << harness.status();
    for (const nlohmann::json& prompt : golden["prompts"]) {
      worst = std::max(worst, CheckPrompt(golden, prompt, harness->get()));
    }
  }
  RecordProperty("largest_error", std::to_string(worst));
}

TEST_P(DirectoryTest, BothStylesOfConfigSayTheSame) {
  const std::unique_ptr<WeightSource> older = OpenDirectory(folder_);
  const std::string copy = CopyWith("config.v5.json");
  const std::unique_ptr<WeightSource> newer = OpenDirectory(copy);
  ASSERT_TRUE(older != nullptr && newer != nullptr);
  const absl::StatusOr<ModelConfig> a = ReadModelConfig(*older);
  const absl::StatusOr<ModelConfig> b = ReadModelConfig(*newer);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(a->head_dim, b->head_dim);
  EXPECT_EQ(a->num_kv_heads, b->num_kv_heads);
  EXPECT_EQ(a->attention_scale, b->attention_scale);
  ASSERT_EQ(a->ropes.size(), b->ropes.size());
  for (size_t i = 0; i < a->ropes.size(); ++i) {
    EXPECT_EQ(a->ropes[i].inv_freq, b->ropes[i].inv_freq);
    EXPECT_EQ(a->ropes[i].magnitude, b->ropes[i].magnitude);
  }
  ASSERT_EQ(a->layers.size(), b->layers.size());
  for (size_t i = 0; i < a->layers.size(); ++i) {
    EXPECT_EQ(a->layers[i].window, b->layers[i].window);
    EXPECT_EQ(a->layers[i].rope, b->layers[i].rope);
  }
  ASSERT_EQ(older->tensors().size(), newer->tensors().size());
  EXPECT_EQ(a->tied_embeddings, b->tied_embeddings);
  std::filesystem::remove_all(copy);
}

TEST_P(DirectoryTest, TokenizesAndDecodesAsTheGolden) {
  ModelOptions options;
  options.header_only = true;
  const auto model = LoadedModel::Open(folder_, options);
  ASSERT_TRUE(model.ok()) << model.status();
  const Tokenizer& tokenizer = *(*model)->text().tokenizer;
  const nlohmann::json golden = ReadJson(folder_ + "/tokenizer_golden.json");
  ASSERT_FALSE(golden.empty());
  for (const nlohmann::json& record : golden) {
    const std::string text = record["text"];
    const auto ids = tokenizer.Encode(text, {.add_special = true, .parse_special = true});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, record["ids"].get<std::vector<int32_t>>()) << text;
    const auto decoded = tokenizer.Decode(record["ids"].get<std::vector<int32_t>>(), true);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, record["decoded"].get<std::string>()) << text;
  }
  EXPECT_EQ((*model)->text().end_ids, (std::vector<int32_t>{1, 4}));  // <|eos|>, <|im_end|>
  EXPECT_NE((*model)->text().chat_template, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, DirectoryTest, testing::ValuesIn(kModels),
                         [](const testing::TestParamInfo<const char*>& param_info) {
                           return std::string(param_info.param);
                         });

}  // namespace
}  // namespace llm
