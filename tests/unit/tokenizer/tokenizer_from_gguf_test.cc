// The tokenizer keys of GGUF metadata, from a scripted source.
#include "src/engine/tokenizer_from_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <variant>

namespace llm {
namespace {

using testing::ElementsAre;

class FakeMetadata final : public Metadata {
 public:
  using Value = std::variant<int64_t, double, bool, std::string, std::vector<std::string>,
                             std::vector<int64_t>, std::vector<uint8_t>, std::vector<float>>;
  std::map<std::string, Value> values;  // without "tokenizer.ggml."

  bool Has(absl::string_view key) const override { return values.count(Short(key)) > 0; }
  absl::StatusOr<int64_t> GetInt(absl::string_view key) const override { return Get<int64_t>(key); }
  absl::StatusOr<double> GetFloat(absl::string_view key) const override { return Get<double>(key); }
  absl::StatusOr<bool> GetBool(absl::string_view key) const override { return Get<bool>(key); }
  absl::StatusOr<absl::string_view> GetString(absl::string_view key) const override {
    const auto* text = Find<std::string>(key);
    if (text == nullptr) return absl::NotFoundError(key);
    return absl::string_view(*text);
  }
  absl::StatusOr<TextList> GetStrings(absl::string_view key) const override {
    const auto* list = Find<std::vector<std::string>>(key);
    if (list == nullptr) return absl::NotFoundError(key);
    std::string& joined = joined_[Short(key)];
    joined = JoinForTextList(*list);
    return TextList(joined, list->size());
  }
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key) const override {
    return Get<std::vector<int64_t>>(key);
  }
  absl::StatusOr<std::vector<uint8_t>> GetSmallInts(absl::string_view key) const override {
    return Get<std::vector<uint8_t>>(key);
  }
  absl::StatusOr<std::vector<float>> GetFloats(absl::string_view key) const override {
    return Get<std::vector<float>>(key);
  }
  std::vector<absl::string_view> Keys() const override { return {}; }

 private:
  mutable std::map<std::string, std::string> joined_;  // what a TextList is of
  static std::string Short(absl::string_view key) {
    return std::string(key.substr(std::string("tokenizer.ggml.").size()));
  }
  template <typename T>
  const T* Find(absl::string_view key) const {
    const auto found = values.find(Short(key));
    return found == values.end() ? nullptr : std::get_if<T>(&found->second);
  }
  template <typename T>
  absl::StatusOr<T> Get(absl::string_view key) const {
    const T* value = Find<T>(key);
    if (value == nullptr) return absl::NotFoundError(key);
    return *value;
  }
};

FakeMetadata Bpe() {
  FakeMetadata metadata;
  metadata.values = {{"model", std::string("gpt2")},
                     {"pre", std::string("smollm")},
                     {"tokens", std::vector<std::string>{"a", "b", "ab"}},
                     {"merges", std::vector<std::string>{"a b"}}};
  return metadata;
}

TEST(TokenizerFromGgufTest, ReadsAByteLevelVocabulary) {
  FakeMetadata metadata = Bpe();
  metadata.values["token_type"] = std::vector<uint8_t>{1, 3, 4};
  metadata.values["bos_token_id"] = int64_t{1};
  metadata.values["add_bos_token"] = true;
  TokenizerTexts texts;
  const auto spec = TokenizerSpecFromGguf(metadata, &texts);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model, TokenizerModel::kBpe);
  EXPECT_EQ(spec->pre_tokenizer, "smollm");
  EXPECT_THAT(texts.tokens, ElementsAre("a", "b", "ab"));
  EXPECT_EQ(spec->types[2], TokenType::kUserDefined);
  EXPECT_THAT(texts.merges, ElementsAre("a b"));
  EXPECT_EQ(spec->bos_id, 1);
  EXPECT_EQ(spec->eos_id, -1);
  EXPECT_TRUE(spec->add_bos);
}

TEST(TokenizerFromGgufTest, GivesASentencePieceModelItsDefaults) {
  FakeMetadata metadata;
  metadata.values = {{"model", std::string("llama")},
                     {"tokens", std::vector<std::string>{"<unk>", "<s>", "</s>"}},
                     {"scores", std::vector<float>{0, 0, 0}}};
  TokenizerTexts texts;
  const auto spec = TokenizerSpecFromGguf(metadata, &texts);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model, TokenizerModel::kSpm);
  EXPECT_EQ(spec->unknown_id, 0);
  EXPECT_EQ(spec->bos_id, 1);
  EXPECT_EQ(spec->eos_id, 2);
  EXPECT_TRUE(spec->add_bos);
  EXPECT_TRUE(spec->add_space_prefix);
}

TEST(TokenizerFromGgufTest, ReadsAnAllOnesIdAsNone) {
  FakeMetadata metadata = Bpe();
  metadata.values["bos_token_id"] = int64_t{0xFFFFFFFF};
  TokenizerTexts texts;
  EXPECT_EQ(TokenizerSpecFromGguf(metadata, &texts)->bos_id, -1);
}

TEST(TokenizerFromGgufTest, RefusesWhatItCannotRead) {
  FakeMetadata metadata = Bpe();
  metadata.values["bos_token_id"] = int64_t{1} << 40;
  EXPECT_EQ(TokenizerFromGguf(metadata).status().code(), absl::StatusCode::kInvalidArgument);
  metadata = Bpe();
  metadata.values["token_type"] = std::vector<uint8_t>{1, 7, 1};
  EXPECT_EQ(TokenizerFromGguf(metadata).status().code(), absl::StatusCode::kInvalidArgument);
  metadata = Bpe();
  metadata.values["model"] = std::string("t5");
  EXPECT_EQ(TokenizerFromGguf(metadata).status().code(), absl::StatusCode::kUnimplemented);
  metadata = Bpe();
  metadata.values.erase("tokens");
  EXPECT_EQ(TokenizerFromGguf(metadata).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace llm
