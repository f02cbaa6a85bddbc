// Chat prompts of the real models: SmolLM2's own template, and Gemma's file, which has none.
#include "src/engine/loaded_model.h"
#include "tests/golden/golden_util.h"

namespace llm {
namespace {

std::shared_ptr<const LoadedModel> Load(const char* variable) {
  ModelOptions options;
  const auto model = LoadedModel::Open(std::getenv(variable), options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.value_or(nullptr);
}

TEST(ChatGoldenTest, SmolLm2RendersWhatItsTemplateRendersElsewhere) {
  if (std::getenv("INLAY_SMOLLM2") == nullptr) {
    GTEST_SKIP() << "INLAY_SMOLLM2 does not give the model's path";
  }
  const auto model = Load("INLAY_SMOLLM2");
  ASSERT_NE(model, nullptr);
  const nlohmann::json golden = ReadJson(INLAY_TEST_DATA "/text/smollm2_chat.json");
  ASSERT_EQ(golden["cases"].size(), 9u);
  for (const nlohmann::json& one : golden["cases"]) {
    const absl::StatusOr<std::string> text = RenderChat(model->text(), one["chat"].dump());
    ASSERT_TRUE(text.ok()) << one["name"] << ": " << text.status();
    EXPECT_EQ(*text, one["text"].get<std::string>()) << one["name"];
  }
}

TEST(ChatGoldenTest, SmolLm2ChatPromptHasTheIdsOfTheGolden) {
  const std::string path = INLAY_SHARED_DATA "/real/smollm2-135m-instruct-q4_1.golden.json";
  if (std::getenv("INLAY_SMOLLM2") == nullptr || !FileExists(path)) {
    GTEST_SKIP() << "needs INLAY_SMOLLM2 and shared/data";
  }
  const auto model = Load("INLAY_SMOLLM2");
  ASSERT_NE(model, nullptr);
  const nlohmann::json golden = ReadJson(path);
  for (const nlohmann::json& prompt : golden["prompts"]) {
    if (prompt["name"] != "chat") continue;
    const auto ids = model->text().tokenizer->Encode(prompt["text"].get<std::string>(),
                                                     {.add_special = true, .parse_special = true});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, prompt["ids"].get<std::vector<int32_t>>());
  }
}

TEST(ChatGoldenTest, Gemma3WithoutATemplateRefusesAChat) {
  if (std::getenv("INLAY_GEMMA3") == nullptr) {
    GTEST_SKIP() << "INLAY_GEMMA3 does not give the model's path";
  }
  const auto model = Load("INLAY_GEMMA3");
  ASSERT_NE(model, nullptr);
  const auto text = RenderChat(model->text(), R"([{"role": "user", "content": "hello"}])");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kFailedPrecondition) << text.status();
}

}  // namespace
}  // namespace llm
