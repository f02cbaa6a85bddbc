// Ids and texts against those of other implementations (SentencePiece, HF tokenizers), on real and
// tiny vocabularies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "src/engine/tokenizer_from_gguf.h"
#include "src/loader/gguf_reader.h"
#include "src/tokenizer/detokenizer.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {
namespace {

using Json = nlohmann::json;

Json ReadGolden(const std::string& name) {
  std::ifstream in(std::string(INLAY_TEST_DATA "/tokenizer/") + name);
  return Json::parse(in);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path) {
  auto file = OpenModelFile(path);
  if (!file.ok()) return file.status();
  auto source = OpenGguf(std::move(file).value(), LoaderLimits());
  if (!source.ok()) return source.status();
  return TokenizerFromGguf((*source)->metadata());
}

std::string Detokenize(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer detokenizer(&tokenizer, true);
  std::string text;
  for (int32_t id : ids) detokenizer.Append(id, &text);
  detokenizer.Finish(&text);
  return text;
}

void CheckIds(const Tokenizer& tokenizer, const std::string& text, bool parse_special,
              const std::vector<int32_t>& expected) {
  const auto ids = tokenizer.Encode(text, {.add_special = false, .parse_special = parse_special});
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, expected) << text;
}

void CheckCases(const Tokenizer& tokenizer, const Json& cases) {
  ASSERT_FALSE(cases.empty());
  for (const Json& row : cases) {
    const std::string text = row["text"];
    const std::vector<int32_t> ids = row["ids"];
    CheckIds(tokenizer, text, true, ids);
    if (row.contains("ids_no_special_parsing")) {
      CheckIds(tokenizer, text, false, row["ids_no_special_parsing"]);
    }
    const std::string decoded = row.value("decoded", text);
    const auto joined = tokenizer.Decode(ids, true);
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ(*joined, decoded);
    EXPECT_EQ(Detokenize(tokenizer, ids), decoded);
  }
}

void CheckInvalidUtf8(const Tokenizer& tokenizer, const std::string& ids_key) {
  for (const Json& row : ReadGolden("invalid_utf8.json")["cases"]) {
    const std::string as_text = row["as_text"];
    CheckIds(tokenizer, as_text, false, row[ids_key]);
    const std::string bytes = absl::HexStringToBytes(row["bytes_hex"].get<std::string>());
    const auto ids = tokenizer.Encode(bytes, {.add_special = false, .parse_special = false});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, row[ids_key].get<std::vector<int32_t>>());
    EXPECT_EQ(Detokenize(tokenizer, *ids), as_text);
  }
}

// Null, with the reason, when the environment names no model.
std::unique_ptr<Tokenizer> LoadRealModel(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) return nullptr;
  auto tokenizer = LoadTokenizer(path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

TEST(TokenizerGoldenTest, SmolLm2GivesTheIdsAndTextsOfHfTokenizers) {
  const auto tokenizer = LoadRealModel("INLAY_SMOLLM2");
  if (tokenizer == nullptr) GTEST_SKIP() << "INLAY_SMOLLM2 does not name the model file";
  CheckCases(*tokenizer, ReadGolden("smollm2.json")["cases"]);
}

TEST(TokenizerGoldenTest, SmolLm2ReadsInvalidUtf8AsPythonDoes) {
  const auto tokenizer = LoadRealModel("INLAY_SMOLLM2");
  if (tokenizer == nullptr) GTEST_SKIP() << "INLAY_SMOLLM2 does not name the model file";
  CheckInvalidUtf8(*tokenizer, "smollm2_ids");
}

TEST(TokenizerGoldenTest, Gemma3GivesTheIdsOfSentencePieceWithAndWithoutControlTokens) {
  const auto tokenizer = LoadRealModel("INLAY_GEMMA3");
  if (tokenizer == nullptr) GTEST_SKIP() << "INLAY_GEMMA3 does not name the model file";
  CheckCases(*tokenizer, ReadGolden("gemma3.json")["cases"]);
}

TEST(TokenizerGoldenTest, Gemma3ReadsInvalidUtf8AsPythonDoes) {
  const auto tokenizer = LoadRealModel("INLAY_GEMMA3");
  if (tokenizer == nullptr) GTEST_SKIP() << "INLAY_GEMMA3 does not name the model file";
  CheckInvalidUtf8(*tokenizer, "gemma3_ids");
}

TEST(TokenizerGoldenTest, Gemma3PutsBosInFront) {
  const auto tokenizer = LoadRealModel("INLAY_GEMMA3");
  if (tokenizer == nullptr) GTEST_SKIP() << "INLAY_GEMMA3 does not name the model file";
  EXPECT_THAT(tokenizer->Encode("hello", {}).value(), testing::ElementsAre(2, 23391));
}

struct TinyCase {
  std::string name, gguf, golden;
};

class TinyTokenizerTest : public testing::TestWithParam<TinyCase> {};

TEST_P(TinyTokenizerTest, GivesTheIdsAndTextsOfHfTokenizers) {
  const auto tokenizer = LoadTokenizer(std::string(INLAY_TEST_DATA "/") + GetParam().gguf);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  CheckCases(**tokenizer, ReadGolden(GetParam().golden));
}

INSTANTIATE_TEST_SUITE_P(
    PreTokenizers, TinyTokenizerTest,
    testing::Values(TinyCase{"llama3", "gguf/llama_h64-F32.gguf", "tiny_llama.json"},
                    TinyCase{"qwen2", "tokenizer/tiny_qwen2.gguf", "tiny_qwen2.json"},
                    TinyCase{"o200k", "tokenizer/tiny_gpt_oss_mxfp4.gguf",
                             "tiny_gpt_oss_mxfp4.json"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace llm
