// Every real template of the shared folder renders what transformers' Jinja renders, and fails
// where that fails.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "src/engine/chat_reasoning.h"
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
    if (record.contains("apply_chat_template_output")) continue;
    const auto named = parsed->Render(WithReasoningNames(record["context"].dump()), kNow);
    EXPECT_EQ(named.value_or("an error"), *rendered);
  }
  EXPECT_EQ(outputs, 640);
  EXPECT_EQ(errors, 80);
}

bool Overlaps(const TextSpans& spans, size_t begin, size_t end) {
  return std::any_of(spans.begin(), spans.end(), [begin, end](const TextSpan& span) {
    return span.begin < end && begin < span.end;
  });
}

bool Covers(const TextSpans& spans, size_t begin, size_t end) {
  return std::any_of(spans.begin(), spans.end(), [begin, end](const TextSpan& span) {
    return span.begin <= begin && end <= span.end;
  });
}

// Spellings such as <|im_start|>, <start_of_turn>, [INST] that the data does not have come from the
// template; a message of some length that the template does not have comes from the data.
TEST_F(TemplatesGoldenTest, MarksMessagesAndNoneOfTheTemplatesControlTokens) {
  const std::regex control(R"(<[|/]?[A-Za-z_]{2,30}\|?>|<｜[^<>]{2,40}｜>|\[/?[A-Z_]{3,30}\])");
  int tokens = 0;
  int messages = 0;
  for (std::string line; std::getline(cases_, line);) {
    const auto record = nlohmann::ordered_json::parse(line);
    if (record.contains("error")) continue;
    SCOPED_TRACE(record["template"].get<std::string>() + " / " + record["case"].get<std::string>());
    const ChatTemplate* parsed = Template(record["template"]);
    if (parsed == nullptr) continue;
    auto data = record["context"];
    const auto rendered = parsed->RenderMarked(data.dump(), kNow);
    ASSERT_TRUE(rendered.ok()) << rendered.status();
    EXPECT_EQ(rendered->text, record["output"].get<std::string>());
    for (auto member = data.begin(); member != data.end();) {
      member = member->is_string() ? data.erase(member) : std::next(member);
    }
    const std::string spelled = data.dump();
    for (std::sregex_iterator match(rendered->text.begin(), rendered->text.end(), control), end;
         match != end; ++match) {
      // A tag may be made of a key: <city>.
      std::string word = match->str();
      word.erase(std::remove_if(word.begin(), word.end(),
                                [](char c) { return std::strchr("<>|/[]", c) != nullptr; }),
                 word.end());
      if (spelled.find(match->str()) != std::string::npos) continue;
      if (spelled.find("\"" + word + "\"") != std::string::npos && word != "system" &&
          word != "user" && word != "assistant" && word != "tool") {
        continue;
      }
      const size_t begin = static_cast<size_t>(match->position());
      EXPECT_FALSE(Overlaps(rendered->literal, begin, begin + match->str().size()))
          << match->str() << " at " << begin;
      ++tokens;
    }
    const std::string source =
        ReadFile(kFolder + ("/templates/" + record["template"].get<std::string>()));
    for (const auto& message : data["messages"]) {
      if (!message.contains("content") || !message["content"].is_string()) continue;
      std::string content = message["content"];
      content.resize(content.find_last_not_of(" \n") + 1);  // templates trim
      if (content.size() < 12 || source.find(content) != std::string::npos) continue;
      const size_t at = rendered->text.find(content);
      if (at == std::string::npos) continue;
      EXPECT_TRUE(Covers(rendered->literal, at, at + content.size())) << content;
      ++messages;
    }
  }
  EXPECT_GT(tokens, 1000);
  EXPECT_GT(messages, 500);
}

// transformers gives a message's reasoning_content to templates as `thinking` too, as RenderChat
// does.
TEST_F(TemplatesGoldenTest, RendersWhatApplyChatTemplateRendersOfReasoning) {
  int compared = 0;
  for (std::string line; std::getline(cases_, line);) {
    auto record = nlohmann::ordered_json::parse(line);
    if (!record.contains("apply_chat_template_output")) continue;
    SCOPED_TRACE(record["template"].get<std::string>());
    const ChatTemplate* parsed = Template(record["template"]);
    ASSERT_NE(parsed, nullptr);
    const auto rendered = parsed->Render(WithReasoningNames(record["context"].dump()), kNow);
    ASSERT_TRUE(rendered.ok()) << rendered.status();
    EXPECT_EQ(*rendered, record["apply_chat_template_output"].get<std::string>());
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace llm
