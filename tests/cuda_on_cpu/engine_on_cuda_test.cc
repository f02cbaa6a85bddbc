// The whole library on the emulated GPU, through the C ABI: answers of another implementation, and
// a device that is not there, too small, or fails.
#include <cstdlib>

#include "gmock/gmock.h"
#include "src/runner/graph_bucket.h"
#include "tests/cuda_on_cpu/engine_on_cuda_fixture.h"

namespace llm {
namespace {

using testing::HasSubstr;

// Another order of additions may take the other one of two close tokens.
constexpr double kMargin = 1e-3;

std::vector<int32_t> Head(std::vector<int32_t> tokens, size_t count) {
  tokens.resize(std::min(tokens.size(), count));
  return tokens;
}

// The golden tokens up to the first near tie.
std::vector<int32_t> Expected(const nlohmann::json& prompt) {
  size_t count = 0;
  while (count < prompt["greedy"].size() && prompt["greedy_margin"][count] >= kMargin) ++count;
  return Head(prompt["greedy"].get<std::vector<int32_t>>(), count);
}

std::vector<int32_t> IdsOf(const nlohmann::json& prompt) {
  return prompt["ids"].get<std::vector<int32_t>>();
}

// All prompts of the golden file at once.
class GoldenTokensTest : public EngineOnCudaTest,
                         public testing::WithParamInterface<const char*> {};

TEST_P(GoldenTokensTest, AreGenerated) {
  const nlohmann::json golden = Golden(GetParam());
  ASSERT_FALSE(golden.is_discarded());
  Open(GetParam());
  std::map<llm_request_id, std::vector<int32_t>> expected;
  for (const nlohmann::json& prompt : golden["prompts"]) {
    const std::vector<int32_t> tokens = Expected(prompt);
    ASSERT_FALSE(tokens.empty());
    expected[Submit(IdsOf(prompt), static_cast<uint32_t>(tokens.size()))] = tokens;
  }
  RunAll();
  Poll();
  for (const auto& [id, tokens] : expected) {
    EXPECT_EQ(answers_[id].status, LLM_OK) << answers_[id].message;
    EXPECT_EQ(answers_[id].ids, tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokensTest,
                         testing::Values("llama_h64-F32", "llama_h64-BF16", "llama_h64-Q4_1"),
                         [](const testing::TestParamInfo<const char*>& param_info) {
                           return std::string(param_info.param).substr(10);
                         });

TEST_F(EngineOnCudaTest, ThreadsOfItsOwnDriveItAsWell) {
  const nlohmann::json prompt = Golden("llama_h64-F32")["prompts"][0];
  Open("llama_h64-F32", EngineOptions(LLM_DRIVE_THREADS));
  const llm_request_id id = Submit(IdsOf(prompt), 4);
  while (answers_[id].num_finished == 0) Poll(-1);
  EXPECT_EQ(answers_[id].ids, Head(Expected(prompt), 4));
}

TEST_F(EngineOnCudaTest, TheDefaultDeviceIsTheGpuWhereThereIsOne) {
  ASSERT_EQ(TryOpen(PathOf("llama_h64-F32"), ModelOptions(LLM_DEVICE_DEFAULT)), LLM_OK);
  EXPECT_GT(memory().allocated_bytes(), 0u);
  CloseModel();
  gpu().set_num_devices(0);
  ASSERT_EQ(TryOpen(PathOf("llama_h64-F32"), ModelOptions(LLM_DEVICE_DEFAULT)), LLM_OK);
  EXPECT_EQ(memory().allocated_bytes(), 0u);
}

TEST_F(EngineOnCudaTest, SaysWhyThereIsNoGpu) {
  gpu().set_num_devices(0);
  EXPECT_EQ(TryOpen(PathOf("llama_h64-F32"), ModelOptions()), LLM_UNAVAILABLE);
  EXPECT_THAT(llm_last_error(), HasSubstr("device: CUDA"));
  gpu().set_num_devices(1);
  gpu().FailCall(0, cudaErrorInsufficientDriver);
  EXPECT_EQ(TryOpen(PathOf("llama_h64-F32"), ModelOptions()), LLM_UNAVAILABLE);
  EXPECT_THAT(llm_last_error(), HasSubstr("driver"));
}

TEST_F(EngineOnCudaTest, RefusesKernelsOfAnotherDevice) {
  llm_model_options options = ModelOptions();
  options.kernels = {"avx2", 4};
  EXPECT_EQ(TryOpen(PathOf("llama_h64-F32"), options), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("kernels"));
}

TEST_F(EngineOnCudaTest, TakesTheMemoryThatThePlanSays) {
  llm_memory_plan plan;
  ASSERT_EQ(TryPlan(PathOf("llama_h64-Q4_1"), ModelOptions(), EngineOptions(), &plan), LLM_OK)
      << llm_last_error();
  EXPECT_EQ(memory().allocated_bytes() + memory().pinned_bytes(), 0u);
  Open("llama_h64-Q4_1");
  // Graphs are made later, in what is kept for them.
  const size_t graphs = GraphBytes({.max_rows = 4, .max_context = 256, .num_layers = 2});
  EXPECT_EQ(memory().allocated_bytes() + memory().pinned_bytes() + graphs,
            plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
}

TEST_F(EngineOnCudaTest, TooLittleMemoryIsSaidInNumbers) {
  memory().set_limit_bytes(1000);
  EXPECT_EQ(TryOpen(PathOf("llama_h64-F32"), ModelOptions()), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("1000 bytes are free"));
  memory().set_limit_bytes(limit_bytes_);
  ASSERT_EQ(TryOpen(PathOf("llama_h64-F32"), ModelOptions()), LLM_OK);
  memory().set_limit_bytes(memory().allocated_bytes() + 5000);
  EXPECT_EQ(TryOpenEngine(EngineOptions()), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("5000 bytes are free"));
}

TEST_F(EngineOnCudaTest, APackOpensWithTheSameAnswers) {
  const nlohmann::json prompt = Golden("llama_h64-F32")["prompts"][1];
  const std::string path = PathOf("llama_h64-F32");
  const std::string pack = testing::TempDir() + "/engine_on_cuda.pack";
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = {path.data(), path.size()};
  llm_model_options options = ModelOptions();
  ASSERT_EQ(llm_model_save(&source, &options, pack.data(), pack.size()), LLM_OK)
      << llm_last_error();
  EXPECT_EQ(memory().allocated_bytes(), 0u);
  options.map_pack = LLM_ON;
  EXPECT_EQ(TryOpen(pack, options), LLM_INVALID_ARGUMENT);
  options.map_pack = LLM_OFF;
  options.verify_pack = LLM_ON;
  ASSERT_EQ(TryOpen(pack, options), LLM_OK) << llm_last_error();
  ASSERT_EQ(TryOpenEngine(EngineOptions()), LLM_OK) << llm_last_error();
  const llm_request_id id = Submit(IdsOf(prompt), 4);
  RunAll();
  Poll();
  EXPECT_EQ(answers_[id].ids, Head(Expected(prompt), 4));
  std::remove(pack.c_str());
}

TEST_F(EngineOnCudaTest, ASavedPrefixComesBackFromAFile) {
  const nlohmann::json prompt = Golden("llama_h64-F32")["prompts"][1];
  const std::vector<int32_t> ids = IdsOf(prompt);
  const std::string path = testing::TempDir() + "/engine_on_cuda.prefix";
  Open("llama_h64-F32");
  llm_prefix prefix;
  llm_prefix_init(&prefix);
  prefix.prompt_ids = ids.data();
  prefix.num_prompt_ids = 32;
  ASSERT_EQ(llm_prefix_save(engine_, &prefix, path.data(), path.size()), LLM_OK)
      << llm_last_error();
  CloseEngine();
  ASSERT_EQ(TryOpenEngine(EngineOptions()), LLM_OK);
  size_t num_tokens = 0;
  ASSERT_EQ(llm_prefix_load(engine_, path.data(), path.size(), nullptr, &num_tokens, nullptr),
            LLM_OK)
      << llm_last_error();
  EXPECT_EQ(num_tokens, 32u);
  const llm_request_id id = Submit(ids, 4);
  RunAll();
  Poll();
  EXPECT_EQ(answers_[id].ids, Head(Expected(prompt), 4));
  std::remove(path.c_str());
}

// Host memory as the second tier: a folder of memory, as /dev/shm is, takes what the GPU evicts.
TEST_F(EngineOnCudaTest, EvictedBlocksComeBackFromTheHost) {
  const nlohmann::json prompt = Golden("llama_h64-F32")["prompts"][1];
  const std::string folder = testing::TempDir();
  llm_engine_options options = EngineOptions();
  options.kv_tokens = 96;
  options.max_context_tokens = 96;
  options.spill_folder = {folder.data(), folder.size()};
  Open("llama_h64-F32", options);
  const auto ask = [&](std::vector<int32_t> ids) {
    const llm_request_id id = Submit(ids, 4);
    RunAll();
    Poll();
    return answers_[id].ids;
  };
  std::vector<int32_t> ids = IdsOf(prompt);
  EXPECT_EQ(ask(ids), Head(Expected(prompt), 4));
  for (int32_t shift = 1; shift < 4; ++shift) {  // these take the first one's blocks
    std::vector<int32_t> other = ids;
    for (int32_t& id : other) id += shift;
    ask(other);
  }
  EXPECT_EQ(ask(ids), Head(Expected(prompt), 4));
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_GT(metrics.spilled_blocks_total, 0u);
  EXPECT_EQ(metrics.spill_failed_blocks_total, 0u);
}

// Minutes here: what the model's own goldens cover on a GPU.
TEST_F(EngineOnCudaTest, SmolLM2BeginsWithItsGoldenTokens) {
  const std::string golden_path = INLAY_SHARED_DATA "/real/smollm2-135m-instruct-q4_1.golden.json";
  const char* path = std::getenv("INLAY_SMOLLM2");
  if (path == nullptr || std::getenv("INLAY_FULL") == nullptr || !FileExists(golden_path)) {
    GTEST_SKIP() << "needs INLAY_SMOLLM2, INLAY_FULL (minutes) and shared/data";
  }
  const nlohmann::json golden = ReadJson(golden_path);
  const nlohmann::json* shortest = &golden["prompts"][0];
  for (const nlohmann::json& prompt : golden["prompts"]) {
    if (prompt["ids"].size() < (*shortest)["ids"].size()) shortest = &prompt;
  }
  ASSERT_EQ(TryOpen(path, ModelOptions()), LLM_OK) << llm_last_error();
  ASSERT_EQ(TryOpenEngine(EngineOptions()), LLM_OK) << llm_last_error();
  const std::vector<int32_t> expected = Head(Expected(*shortest), 8);
  const llm_request_id id = Submit(IdsOf(*shortest), static_cast<uint32_t>(expected.size()));
  RunAll();
  Poll();
  EXPECT_EQ(answers_[id].ids, expected);
}

}  // namespace
}  // namespace llm
