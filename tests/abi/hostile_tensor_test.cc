// Model files whose tensors or template lie: shapes, places, and programs without an end.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/abi/hostile_file.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

constexpr char kQ[] = "blk.0.attn_q.weight";
constexpr char kK[] = "blk.0.attn_k.weight";

class HostileTensorTest : public testing::Test {
 protected:
  void SetUp() override { bytes_ = ReadTestFile("llama_h64-Q4_1.gguf"); }

  // The fields of a tensor of two dimensions, behind its name.
  enum Field : size_t { kNumDims = 0, kDim0 = 4, kDim1 = 12, kType = 20, kOffset = 24 };
  template <typename T>
  T* At(const std::string& name, Field field) {
    const size_t at = bytes_.find(name);
    EXPECT_NE(at, std::string::npos) << name;
    return reinterpret_cast<T*>(&bytes_[at + name.size() + field]);
  }
  template <typename T>
  void Set(const std::string& name, Field field, T value) {
    std::memcpy(At<T>(name, field), &value, sizeof(value));
  }
  template <typename T>
  T Get(const std::string& name, Field field) {
    T value;
    std::memcpy(&value, At<T>(name, field), sizeof(value));
    return value;
  }
  void ExpectRefused(const char* names) {
    file_.Write(bytes_);
    const HostileRun run = file_.Run("");
    EXPECT_EQ(run.open, LLM_INVALID_ARGUMENT);
    EXPECT_THAT(run.message, HasSubstr(names));
  }
  // Puts a template of the same size in the place of the file's.
  void SetTemplate(std::string text) {
    const std::string key = "tokenizer.chat_template";
    const size_t at = bytes_.find(key) + key.size() + sizeof(uint32_t);
    uint64_t size = 0;
    std::memcpy(&size, &bytes_[at], sizeof(size));
    ASSERT_LE(text.size(), size);
    text.resize(size, ' ');
    bytes_.replace(at + sizeof(size), size, text);
  }

  HostileFile file_;
  std::string bytes_;
};

TEST_F(HostileTensorTest, TensorsThatShareBytesAreRefused) {
  Set(kK, kOffset, Get<uint64_t>(kQ, kOffset));
  ExpectRefused("overlaps");
}

TEST_F(HostileTensorTest, ATensorOutsideTheFileIsRefused) {
  for (const uint64_t offset : {uint64_t{1} << 40, ~uint64_t{31}}) {
    Set(kQ, kOffset, offset);
    ExpectRefused("outside the file");
  }
}

TEST_F(HostileTensorTest, ATensorOfAnotherShapeIsRefusedByName) {
  const auto dim0 = Get<uint64_t>(kK, kDim0);
  const auto dim1 = Get<uint64_t>(kK, kDim1);
  Set(kK, kDim1, dim1 / 2);
  ExpectRefused(kK);
  Set(kK, kDim0, dim1);
  Set(kK, kDim1, dim0);
  ExpectRefused(kK);
}

TEST_F(HostileTensorTest, SizesThatWrapAreRefused) {
  for (const uint64_t size : {uint64_t{1} << 59, uint64_t{1} << 63, ~uint64_t{0}}) {
    Set(kQ, kDim1, size);
    ExpectRefused(kQ);
  }
}

TEST_F(HostileTensorTest, ATensorOfAnotherTypeIsRefusedOrServed) {
  for (uint32_t type = 0; type < 64; ++type) {
    Set(kQ, kType, type);
    file_.Write(bytes_);
    const HostileRun run = file_.Run("");
    EXPECT_TRUE(run.open != LLM_OK || run.num_finished == 1) << type;
    EXPECT_TRUE(run.open == LLM_OK || !run.message.empty()) << type;
  }
}

// The chat is refused, and the engine serves what is not a chat.
TEST_F(HostileTensorTest, ATemplateWithoutAnEndIsRefusedAlone) {
  for (const char* text : {
           "{% for i in range(999999999) %}x{% endfor %}",
           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
           "{% for a in [[[1]]] recursive %}{{ loop([a]) }}{% endfor %}",
           "{{ 'x' * 999999999 }}",
       }) {
    SCOPED_TRACE(text);
    SetTemplate(text);
    file_.Write(bytes_);
    llm_model* model = nullptr;
    ASSERT_EQ(llm_model_open(file_.path().data(), file_.path().size(), nullptr, &model), LLM_OK)
        << llm_last_error();
    const char* chat = R"([{"role": "user", "content": "hi"}])";
    size_t size = 0;
    EXPECT_EQ(llm_chat_render(model, chat, std::strlen(chat), nullptr, 0, &size),
              LLM_RESOURCE_EXHAUSTED);
    EXPECT_THAT(llm_last_error(), HasSubstr("template"));
    llm_model_release(model);
    const HostileRun run = file_.Run("");
    EXPECT_TRUE(run.survived()) << run.message;
    EXPECT_EQ(run.finish, LLM_OK);
  }
}

}  // namespace
}  // namespace llm
