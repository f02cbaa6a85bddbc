// llm_plan against what the opens then allocate.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const char* model) {
  return std::string(INLAY_TEST_DATA) + "/gguf/" + model + ".gguf";
}

llm_model_source SourceOf(const std::string& path) {
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = {path.data(), path.size()};
  return source;
}

class AbiPlanTest : public AbiTest {
 protected:
  void SetUp() override {
    llm_model_options_init(&model_options_);
    model_options_.num_threads = 2;
    llm_memory_plan_init(&plan_);
  }

  llm_model_options model_options_;
  llm_memory_plan plan_;
};

TEST_F(AbiPlanTest, SaysExactlyWhatIsThenAllocated) {
  for (const char* name : {"llama_h64-F32", "llama_h64-Q4_0", "llama_h64-Q8_0", "gemma3_text-F16",
                           "gemma3_text-Q4_1"}) {
    const std::string path = PathOf(name);
    const llm_model_source source = SourceOf(path);
    ASSERT_EQ(llm_model_open(path.data(), path.size(), &model_options_, &model_), LLM_OK);
    llm_model_info info;
    llm_model_info_init(&info);
    ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
    for (uint32_t kv_dtype = LLM_KV_F32; kv_dtype <= LLM_KV_INT8; ++kv_dtype) {
      SCOPED_TRACE(testing::Message() << name << ", kv_dtype " << kv_dtype);
      llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
      options.kv_dtype = kv_dtype;
      ASSERT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_OK) << llm_last_error();
      ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
      llm_metrics_snapshot metrics;
      llm_metrics_snapshot_init(&metrics);
      ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
      EXPECT_EQ(plan_.weights_bytes, info.weights_bytes);
      EXPECT_EQ(plan_.tokenizer_bytes, info.tokenizer_bytes);
      EXPECT_EQ(plan_.kv_bytes, metrics.kv_bytes_current);
      EXPECT_EQ(plan_.kv_bytes + plan_.workspace_bytes, metrics.memory_bytes_current);
      EXPECT_EQ(plan_.kv_tokens, 512u);
      EXPECT_EQ(plan_.max_step_tokens, 64u);
      EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
      engine_ = nullptr;
    }
    llm_model_release(model_);
    model_ = nullptr;
  }
}

TEST_F(AbiPlanTest, ExperimentalKeysAndValuesOpenOrSayWhyNot) {
  constexpr uint32_t kInt4 = 6;  // LLM_KV_INT4, without LLM_EXPERIMENTAL
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  const auto kv_bytes = [&](const char* name, uint32_t kv_dtype) {
    const std::string path = PathOf(name);
    const llm_model_source source = SourceOf(path);
    options.kv_dtype = kv_dtype;
    EXPECT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_OK) << llm_last_error();
    return plan_.kv_bytes;
  };
  // A head of 32 has 16 bytes of codes and 2 of scales where f16 has 64.
  EXPECT_EQ(kv_bytes("gemma3_text-F16", kInt4) * 64, kv_bytes("gemma3_text-F16", LLM_KV_F16) * 18);
  const std::string path = PathOf("llama_h64-F32");
  const llm_model_source source = SourceOf(path);
  options.kv_dtype = kInt4;
  EXPECT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), testing::HasSubstr("head_dim"));
}

TEST_F(AbiPlanTest, TheModelOpensWithinThePlanAndNotWithinLess) {
  const std::string path = PathOf("llama_h64-F32");
  const llm_model_source source = SourceOf(path);
  ASSERT_EQ(llm_plan(&source, &model_options_, nullptr, &plan_), LLM_OK) << llm_last_error();
  model_options_.max_memory_bytes = plan_.weights_bytes + plan_.loading_bytes;
  EXPECT_EQ(llm_model_open(path.data(), path.size(), &model_options_, &model_), LLM_OK)
      << llm_last_error();
  --model_options_.max_memory_bytes;
  EXPECT_EQ(llm_plan(&source, &model_options_, nullptr, &plan_), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("max_memory_bytes"));
  llm_model* other = nullptr;
  const std::string planned = llm_last_error();
  EXPECT_EQ(llm_model_open(path.data(), path.size(), &model_options_, &other),
            LLM_RESOURCE_EXHAUSTED);
  EXPECT_EQ(llm_last_error(), planned);
  const std::string pack = testing::TempDir() + "abi_plan_test.llmpack";
  EXPECT_EQ(llm_model_save(&source, &model_options_, pack.data(), pack.size()),
            LLM_RESOURCE_EXHAUSTED);
  EXPECT_EQ(llm_last_error(), planned);
}

TEST_F(AbiPlanTest, AnEngineBeyondItsLimitSaysWhatToLower) {
  const std::string path = PathOf("llama_h64-F32");
  const llm_model_source source = SourceOf(path);
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  ASSERT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_OK) << llm_last_error();
  options.max_memory_bytes = plan_.kv_bytes + plan_.workspace_bytes - 1;
  EXPECT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("lower kv_tokens"));
  options.kv_tokens /= 2;
  EXPECT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_OK) << llm_last_error();
  options.max_memory_bytes = 1;
  EXPECT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("lower max_step_tokens and max_sequences"));
}

TEST_F(AbiPlanTest, EverySourceIsPlannedAlike) {
  const std::string path = PathOf("gemma3_text-Q4_1");
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  llm_model_source source = SourceOf(path);
  ASSERT_EQ(llm_plan(&source, &model_options_, &options, &plan_), LLM_OK) << llm_last_error();
  llm_memory_plan other;
  llm_memory_plan_init(&other);
  source.kind = LLM_SOURCE_FD;
  source.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(llm_plan(&source, &model_options_, &options, &other), LLM_OK) << llm_last_error();
  EXPECT_EQ(std::memcmp(&plan_, &other, sizeof(plan_)), 0);
  std::string bytes(static_cast<size_t>(lseek(source.fd, 0, SEEK_END)), '\0');
  ASSERT_EQ(pread(source.fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  close(source.fd);
  source.kind = LLM_SOURCE_MEMORY;
  source.data = bytes.data();
  source.size = bytes.size();
  ASSERT_EQ(llm_plan(&source, &model_options_, &options, &other), LLM_OK) << llm_last_error();
  EXPECT_EQ(std::memcmp(&plan_, &other, sizeof(plan_)), 0);
}

// The weights of this file are never asked for.
TEST_F(AbiPlanTest, ReadsTheHeaderAlone) {
  struct Reads {
    std::string path = PathOf("llama_h64-F32");
    uint64_t end = 0;
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } reads;
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_READER;
  source.size = static_cast<uint64_t>(lseek(reads.fd, 0, SEEK_END));
  source.user_data = &reads;
  source.read = [](void* user_data, uint64_t offset, void* buffer, uint64_t size) -> int64_t {
    Reads& all = *static_cast<Reads*>(user_data);
    all.end = std::max(all.end, offset + size);
    return pread(all.fd, buffer, size, static_cast<off_t>(offset));
  };
  ASSERT_EQ(llm_plan(&source, &model_options_, nullptr, &plan_), LLM_OK) << llm_last_error();
  close(reads.fd);
  EXPECT_LE(reads.end, uint64_t{1} << 18) << "one chunk of the header's reader";
  EXPECT_GT(source.size, uint64_t{1} << 18);
}

TEST_F(AbiPlanTest, WhatIsWrongIsNamed) {
  const std::string path = PathOf("llama_h64-F32");
  llm_model_source source = SourceOf(path);
  EXPECT_EQ(llm_plan(nullptr, nullptr, nullptr, &plan_), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_plan(&source, nullptr, nullptr, nullptr), LLM_INVALID_ARGUMENT);
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.max_memory_bytes = 1000;
  EXPECT_EQ(llm_plan(&source, nullptr, &options, &plan_), LLM_RESOURCE_EXHAUSTED);
  source.kind = 9;
  EXPECT_EQ(llm_plan(&source, nullptr, nullptr, &plan_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("kind 9"));
  source = SourceOf("/no/such/file");
  source.path = Str("/no/such/file");
  EXPECT_EQ(llm_plan(&source, nullptr, nullptr, &plan_), LLM_NOT_FOUND);
}

}  // namespace
}  // namespace llm
