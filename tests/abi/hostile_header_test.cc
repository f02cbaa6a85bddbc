// Model files whose header is well-formed and lies: sizes, ids and numbers that no model has.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/abi/hostile_file.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class HostileHeaderTest : public testing::Test {
 protected:
  void Load(const char* name) { bytes_ = ReadTestFile(name); }

  // Overwrites the value of a key of a fixed-size type.
  template <typename T>
  void Set(const std::string& key, T value) {
    const size_t at = bytes_.find(key);
    ASSERT_NE(at, std::string::npos) << key;
    std::memcpy(&bytes_[at + key.size() + sizeof(uint32_t)], &value, sizeof(T));
  }
  // Overwrites the text of token `id` with one of the same size.
  void SetToken(const std::string& from, const std::string& to) {
    std::string old(8, '\0');
    old[0] = static_cast<char>(from.size());
    const size_t at = bytes_.find(old + from);
    ASSERT_NE(at, std::string::npos) << from;
    bytes_.replace(at + 8, from.size(), to);
  }
  HostileRun Run() {
    file_.Write(bytes_);
    return file_.Run("");
  }
  template <typename T>
  void ExpectRefused(const char* file, const std::string& key, T value, const char* names) {
    SCOPED_TRACE(key);
    Load(file);
    Set(key, value);
    const HostileRun run = Run();
    EXPECT_NE(run.open, LLM_OK);
    EXPECT_THAT(run.message, HasSubstr(names));
  }

  static constexpr const char* kLlama = "llama_h64-Q4_1.gguf";
  static constexpr const char* kGemma = "gemma3_text-Q4_1.gguf";
  HostileFile file_;
  std::string bytes_;
};

TEST_F(HostileHeaderTest, ImpossibleSizesAreRefusedByName) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  for (const uint32_t value : {0u, kMost, 1u << 31}) {
    for (const char* key :
         {"block_count", "context_length", "embedding_length", "feed_forward_length",
          "attention.head_count", "attention.head_count_kv", "rope.dimension_count"}) {
      ExpectRefused(kLlama, std::string("llama.") + key, value, key);
    }
    for (const char* key : {"attention.key_length", "attention.value_length",
                            "attention.sliding_window", "attention.sliding_window_pattern"}) {
      ExpectRefused(kGemma, std::string("gemma3.") + key, value, key);
    }
  }
}

TEST_F(HostileHeaderTest, SizesThatContradictTheTensorsAreRefused) {
  ExpectRefused(kLlama, "llama.block_count", 1024u, "blk.2");
  ExpectRefused(kLlama, "llama.block_count", 1u, "blk.1");
  ExpectRefused(kLlama, "llama.embedding_length", 128u, "token_embd");
  ExpectRefused(kLlama, "llama.feed_forward_length", 161u, "ffn_gate");
  ExpectRefused(kLlama, "llama.attention.head_count", 3u, "head_count");
  ExpectRefused(kLlama, "llama.attention.head_count_kv", 3u, "kv heads");
  ExpectRefused(kLlama, "llama.rope.dimension_count", 15u, "dimension_count");
  ExpectRefused(kLlama, "llama.rope.dimension_count", 18u, "dimension_count");
  ExpectRefused(kLlama, "llama.vocab_size", 513u, "vocab_size");
  ExpectRefused(kGemma, "gemma3.attention.value_length", 16u, "value_length");
  ExpectRefused(kGemma, "gemma3.attention.key_length", 24u, "24");
}

TEST_F(HostileHeaderTest, NumbersThatMakeNoSenseAreRefused) {
  for (const float value : {0.0f, -1.0f, std::nanf(""), INFINITY, -INFINITY, 1e-38f}) {
    ExpectRefused(kLlama, "llama.rope.freq_base", value, "freq_base");
    ExpectRefused(kLlama, "llama.attention.layer_norm_rms_epsilon", value, "epsilon");
    ExpectRefused(kGemma, "gemma3.rope.freq_base_swa", value, "freq_base_swa");
    ExpectRefused(kGemma, "gemma3.attention.scale", value, "attention.scale");
  }
}

TEST_F(HostileHeaderTest, TokenIdsOutsideTheVocabularyAreRefused) {
  for (const uint32_t id : {512u, 0x7fffffffu, 0x80000000u}) {
    ExpectRefused(kLlama, "tokenizer.ggml.bos_token_id", id, "bos");
    ExpectRefused(kLlama, "tokenizer.ggml.eos_token_id", id, "eos");
  }
}

TEST_F(HostileHeaderTest, ExtremeNumbersThatAreAllowedServeTheRequest) {
  const auto served = [&](const char* file, const std::string& key, auto value) {
    SCOPED_TRACE(key);
    Load(file);
    Set(key, value);
    const HostileRun run = Run();
    EXPECT_TRUE(run.survived()) << run.message;
    EXPECT_EQ(run.num_finished, 1);
    EXPECT_TRUE(run.healthy);
    if (run.finish != LLM_OK) {
      EXPECT_THAT(run.message, HasSubstr("finite"));
    }
  };
  served(kLlama, "llama.context_length", 1u << 26);
  served(kLlama, "llama.context_length", 8u);
  served(kLlama, "llama.rope.freq_base", 1e29f);
  served(kLlama, "llama.rope.freq_base", 1e-29f);
  served(kLlama, "llama.attention.layer_norm_rms_epsilon", 1e29f);
  served(kGemma, "gemma3.attention.scale", 1e29f);
  served(kGemma, "gemma3.attention.sliding_window", 1u);
  served(kGemma, "gemma3.attention.sliding_window", 1u << 26);
  served(kGemma, "gemma3.attention.sliding_window_pattern", 1u);
  served(kLlama, "tokenizer.ggml.eos_token_id", 0xffffffffu);
}

TEST_F(HostileHeaderTest, ADuplicateTokenIsRefusedByItsNumbers) {
  Load(kLlama);
  SetToken("!", "\"");
  const HostileRun run = Run();
  EXPECT_EQ(run.open, LLM_INVALID_ARGUMENT);
  EXPECT_THAT(run.message, HasSubstr("same text"));
}

// The host decides what a context may cost: nothing that the header claims is allocated as claimed.
TEST_F(HostileHeaderTest, AHugeContextIsHeldByTheMemoryLimit) {
  Load(kLlama);
  Set("llama.context_length", 1u << 26);
  file_.Write(bytes_);
  llm_model* model = nullptr;
  ASSERT_EQ(llm_model_open(file_.path().data(), file_.path().size(), nullptr, &model), LLM_OK);
  llm_engine_options options;
  llm_engine_options_init(&options);
  options.drive = LLM_DRIVE_MANUAL;
  options.max_step_tokens = 16;
  options.max_memory_bytes = 64 << 20;
  llm_engine* engine = nullptr;
  const llm_status status = llm_engine_open(model, &options, &engine);
  EXPECT_THAT(status, testing::AnyOf(LLM_OK, LLM_RESOURCE_EXHAUSTED)) << llm_last_error();
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  llm_model_release(model);
}

}  // namespace
}  // namespace llm
