// Control tokens that a user types in a chat, and a chat template that does not parse.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiLiteralTest : public AbiTest {
 protected:
  void SetUp() override {
    AbiTest::SetUp();
    Open(LLM_DRIVE_MANUAL);
    llm_model_info info;
    llm_model_info_init(&info);
    ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
    char text[64];
    size_t size = 0;
    ASSERT_EQ(
        llm_detokenize(model_, &info.eos_id, 1, LLM_TEXT_RENDER_SPECIAL, text, sizeof(text), &size),
        LLM_OK);
    control_.assign(text, size);
  }
  size_t CountTokens(const std::string& text, uint32_t flags) {
    size_t count = 0;
    EXPECT_EQ(llm_tokenize(model_, text.data(), text.size(), flags, nullptr, 0, &count), LLM_OK);
    return count;
  }
  // Prompt tokens of a chat of one message.
  int32_t PromptTokens(const std::string& content, uint32_t literal_content,
                       uint32_t parse_special = 0) {
    const std::string chat = R"([{"role": "user", "content": ")" + content + R"("}])";
    llm_request request;
    llm_request_init(&request);
    request.chat = Str(chat.c_str());
    request.max_new_tokens = 1;
    request.literal_content = literal_content;
    request.parse_special = parse_special;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    const std::vector<llm_event> events = Poll();
    return events.empty() ? -1 : events.back().stats->prompt_tokens;
  }

  std::string control_;  // how the end token is written
};

TEST_F(AbiLiteralTest, AControlTokenInAMessageStaysTextByDefault) {
  const int32_t spelled = static_cast<int32_t>(CountTokens("a" + control_ + "b", 0));
  const int32_t parsed =
      static_cast<int32_t>(CountTokens("a" + control_ + "b", LLM_TEXT_PARSE_SPECIAL));
  ASSERT_GT(spelled, parsed);
  const int32_t literal = PromptTokens("a" + control_ + "b", 0);
  EXPECT_EQ(literal, PromptTokens("a" + control_ + "b", LLM_ON));
  EXPECT_EQ(literal - PromptTokens("a" + control_ + "b", LLM_OFF), spelled - parsed);
}

TEST_F(AbiLiteralTest, TheTemplatesOwnControlTokensAreParsedEitherWay) {
  EXPECT_EQ(PromptTokens("ab", LLM_ON), PromptTokens("ab", LLM_OFF));
  EXPECT_GT(PromptTokens("ab", LLM_ON, LLM_OFF), PromptTokens("ab", LLM_ON)) << "all stay text";
}

TEST_F(AbiLiteralTest, TheSwitchIsChecked) {
  llm_request request = Request(ids_);
  request.literal_content = 3;
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("literal_content"));
}

TEST_F(AbiLiteralTest, AChatSaysWhyTheTemplateIsNotUsable) {
  std::ifstream file(std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t at = bytes.find("{%");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] = ')';
  bytes[at + 3] = ')';
  llm_model* model = nullptr;
  ASSERT_EQ(llm_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), LLM_OK)
      << llm_last_error();
  const std::string chat = R"([{"role": "user", "content": "hi"}])";
  size_t size = 0;
  EXPECT_EQ(llm_chat_render(model, chat.data(), chat.size(), nullptr, 0, &size),
            LLM_FAILED_PRECONDITION);
  EXPECT_THAT(llm_last_error(), HasSubstr("not usable"));
  EXPECT_THAT(llm_last_error(), HasSubstr("line 1"));
  llm_model_release(model);
}

}  // namespace
}  // namespace llm
