// A file whose tokenizer is smaller than its embedding: refused by its header alone, alike by a
// plan and by an open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/engine/memory_plan.h"
#include "tests/unit/loader/gguf_builder.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

// A Llama of `rows` embeddings, whose tensors but for the table are missing.
std::string FileOf(uint64_t rows) {
  GgufBuilder builder;
  builder.String("general.architecture", "llama");
  const std::vector<std::pair<const char*, uint32_t>> sizes = {
      {"block_count", 1},          {"context_length", 64},      {"embedding_length", 32},
      {"feed_forward_length", 32}, {"attention.head_count", 2}, {"attention.head_count_kv", 2}};
  for (const auto& [key, value] : sizes) {
    builder.Value(std::string("llama.") + key, GgufType::kUint32, value);
  }
  builder.Value("llama.attention.layer_norm_rms_epsilon", GgufType::kFloat32, 1e-5f);
  builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", "llama-bpe");
  builder.Strings("tokenizer.ggml.tokens", {"a", "b", "c", "ab"});
  builder.Array<int32_t>("tokenizer.ggml.token_type", GgufType::kInt32, {1, 1, 1, 1});
  builder.Strings("tokenizer.ggml.merges", {"a b"});
  builder.Tensor("token_embd.weight", {32, rows}, 0, 0);
  return builder.Build(std::string(rows * 32 * sizeof(float), '\0'));
}

absl::Status Plan(const std::string& bytes) {
  return PlanMemory(MemoryModelFile(bytes.data(), bytes.size(), "tiny"), {}, {}).status();
}

absl::Status Open(const std::string& bytes) {
  return LoadedModel::Open(MemoryModelFile(bytes.data(), bytes.size(), "tiny"), {}).status();
}

TEST(CheckVocabularyTest, ATokenizerSmallerThanTheEmbeddingIsRefusedBeforeTheWeights) {
  const std::string bytes = FileOf(5);
  for (const absl::Status& status : {Plan(bytes), Open(bytes)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("tiny: the tokenizer has 4 tokens, the embedding 5"));
  }
}

TEST(CheckVocabularyTest, AnEqualOneGetsAsFarAsTheWeights) {
  const std::string bytes = FileOf(4);
  for (const absl::Status& status : {Plan(bytes), Open(bytes)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("tensor"));
  }
}

}  // namespace
}  // namespace llm
