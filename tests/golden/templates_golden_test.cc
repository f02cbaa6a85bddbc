// Every real template of the shared folder renders what transformers' Jinja renders, and fails
// where that fails.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "src/tokenizer/chat_template.h"

namespace llm {
namespace {

// 2025-07-26 09:05:03 UTC, the clock of the golden renderings.
constexpr int64_t kNow = 1753520703;

const char kFolder[] = INLAY_SHARED_DATA "/templates";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class TemplatesGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    cases_.open(std::string(kFolder) + "/renders.jsonl");
    if (!cases_.is_open()) GTEST_SKIP() << "no folder " << kFolder;
  }

  // nullptr when it does not parse, which is then reported.
  const ChatTemplate* Template(const std::string& name) {
    auto& parsed = templates_[name];
    if (parsed == nullptr) {
      auto result = ChatTemplate::Parse(ReadFile(std::string(kFolder) + "/templates/" + name), {});
      if (!result.ok()) {
        ADD_FAILURE() << name << ": " << result.status();
        return nullptr;
      }
      parsed = *std::move(result);
    }
    return parsed.get();
  }

  std::ifstream cases_;
  std::map<std::string, std::unique_ptr<ChatTemplate>> templates_;
};

TEST_F(TemplatesGoldenTest, RendersWhatTransformersRenders) {
  int outputs = 0;
  int errors = 0;
  for (std::string line; std::getline(cases_, line);) {
    const auto record = nlohmann::ordered_json::parse(line);
    const std::string name = record["template"];
    SCOPED_TRACE(name + " / " + record["case"].get<std::string>());
    const ChatTemplate* parsed = Template(name);
    if (parsed == nullptr) continue;
    const auto rendered = parsed->Render(record["context"].dump(), kNow);
    if (record.contains("error")) {
      EXPECT_FALSE(rendered.ok()) << "expected " << record["error"];
      ++errors;
      continue;
    }
    ++outputs;
    ASSERT_TRUE(rendered.ok()) << rendered.status();
    EXPECT_EQ(*rendered, record["output"].get<std::string>());
  }
  EXPECT_EQ(outputs, 640);
  EXPECT_EQ(errors, 80);
}

// transformers copies a message's reasoning_content to `thinking` first; a server does the same.
TEST_F(TemplatesGoldenTest, RendersWhatApplyChatTemplateRendersWhenThinkingIsCopied) {
  int compared = 0;
  for (std::string line; std::getline(cases_, line);) {
    auto record = nlohmann::ordered_json::parse(line);
    if (!record.contains("apply_chat_template_output")) continue;
    SCOPED_TRACE(record["template"].get<std::string>());
    for (auto& message : record["context"]["messages"]) {
      if (message.contains("reasoning_content")) message["thinking"] = message["reasoning_content"];
    }
    const ChatTemplate* parsed = Template(record["template"]);
    ASSERT_NE(parsed, nullptr);
    const auto rendered = parsed->Render(record["context"].dump(), kNow);
    ASSERT_TRUE(rendered.ok()) << rendered.status();
    EXPECT_EQ(*rendered, record["apply_chat_template_output"].get<std::string>());
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace llm
