// Engines with batch_invariant off, through the C ABI: what cuBLASLt takes, what it changes, and
// that nothing needs it.
#include "gmock/gmock.h"
#include "tests/cuda_on_cpu/engine_on_cuda_fixture.h"
#include "tests/cuda_on_cpu/libraries.h"

namespace llm {
namespace {

using cuda_on_cpu::Libraries;
using testing::HasSubstr;

// Twice what rounding activations to bf16 moves a logit of this model by at most.
constexpr double kMargin = 0.2;

class EngineDenseOnCudaTest : public EngineOnCudaTest {
 protected:
  EngineDenseOnCudaTest() { Libraries::Get().Reset(); }
  ~EngineDenseOnCudaTest() override { Libraries::Get().Reset(); }
  void SetUp() override { prompt_ = Golden("llama_h64-BF16")["prompts"][1]; }

  static Libraries& library() { return Libraries::Get(); }
  static llm_engine_options Options(uint32_t batch_invariant) {
    llm_engine_options options = EngineOptions();
    options.batch_invariant = batch_invariant;
    options.max_step_tokens = 32;
    return options;
  }
  static void AddLog(void* user_data, int32_t /*level*/, const char* text, uint64_t size) {
    static_cast<std::string*>(user_data)->append(text, size).append("\n");
  }
  void OpenRounding(const llm_engine_options& options) {
    llm_model_options model_options = ModelOptions();
    model_options.float_activations = LLM_OFF;
    ASSERT_EQ(TryOpen(PathOf("llama_h64-BF16"), model_options), LLM_OK) << llm_last_error();
    ASSERT_EQ(TryOpenEngine(options), LLM_OK) << llm_last_error();
  }
  std::vector<int32_t> ids() const { return prompt_["ids"].get<std::vector<int32_t>>(); }
  // The golden tokens up to the first near tie.
  std::vector<int32_t> Expected() const {
    auto tokens = prompt_["greedy"].get<std::vector<int32_t>>();
    size_t count = 0;
    while (count < tokens.size() && prompt_["greedy_margin"][count] >= kMargin) ++count;
    tokens.resize(count);
    return tokens;
  }
  void ExpectGoldenTokens() {
    const std::vector<int32_t> expected = Expected();
    ASSERT_FALSE(expected.empty());
    answers_.clear();  // another engine's
    const llm_request_id id = Submit(ids(), static_cast<uint32_t>(expected.size()));
    RunAll();
    Poll();
    EXPECT_EQ(answers_[id].ids, expected) << answers_[id].message;
    EXPECT_EQ(answers_[id].num_finished, 1);
  }
  // Without graphs, which are batch_invariant's alone.
  uint64_t PlannedWorkspace(uint32_t batch_invariant) const {
    llm_engine_options options = Options(batch_invariant);
    options.graphs = LLM_OFF;
    llm_memory_plan plan;
    EXPECT_EQ(TryPlan(PathOf("llama_h64-BF16"), ModelOptions(), options, &plan), LLM_OK)
        << llm_last_error();
    return plan.workspace_bytes;
  }

  nlohmann::json prompt_;
};

TEST_F(EngineDenseOnCudaTest, GeneratesTheGoldenTokensThroughTheLibrary) {
  OpenRounding(Options(LLM_OFF));
  ExpectGoldenTokens();
  EXPECT_GT(library().num_products, 0);
  // What it does is in no graph, and so is no step: not even tried.
  EXPECT_EQ(gpu().num_graph_launches(), 0);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_EQ(metrics.graph_failures_total, 0u);
}

TEST_F(EngineDenseOnCudaTest, TheDefaultNeverAsksTheLibrary) {
  for (const uint32_t batch_invariant : {0u, uint32_t{LLM_ON}}) {
    OpenRounding(Options(batch_invariant));
    ExpectGoldenTokens();
    CloseEngine();
    CloseModel();
  }
  EXPECT_EQ(library().num_choices, 0);
}

TEST_F(EngineDenseOnCudaTest, ItsMemoryIsPlanned) {
  EXPECT_EQ(PlannedWorkspace(0), PlannedWorkspace(LLM_ON));
  const uint64_t planned = PlannedWorkspace(LLM_OFF) - PlannedWorkspace(LLM_ON);
  EXPECT_GT(planned, uint64_t{32} << 20);
  const auto taken_by = [&](uint32_t batch_invariant) {
    llm_engine_options options = Options(batch_invariant);
    options.graphs = LLM_OFF;  // they take theirs later
    OpenRounding(options);
    const size_t bytes = memory().allocated_bytes();
    ExpectGoldenTokens();
    EXPECT_EQ(memory().allocated_bytes(), bytes);
    CloseEngine();
    CloseModel();
    return bytes;
  };
  EXPECT_EQ(taken_by(LLM_OFF) - taken_by(LLM_ON), planned);
}

TEST_F(EngineDenseOnCudaTest, WithoutTheLibraryOwnKernelsServeAndAWarningSaysSo) {
  library().name = "";
  std::string log;
  llm_engine_options options = Options(LLM_OFF);
  options.log = AddLog;
  options.log_user_data = &log;
  OpenRounding(options);
  EXPECT_THAT(log, HasSubstr("libcublasLt.so.13"));
  ExpectGoldenTokens();
}

// What other orders of additions gave is not taken for what this engine would compute.
TEST_F(EngineDenseOnCudaTest, ItsSavedPrefixesAreRefusedByBatchInvariantEngines) {
  const std::string path = testing::TempDir() + "/engine_dense_on_cuda.prefix";
  const std::vector<int32_t> tokens = ids();
  OpenRounding(Options(LLM_OFF));
  llm_prefix prefix;
  llm_prefix_init(&prefix);
  prefix.prompt_ids = tokens.data();
  prefix.num_prompt_ids = 32;
  ASSERT_EQ(llm_prefix_save(engine_, &prefix, path.data(), path.size()), LLM_OK)
      << llm_last_error();
  CloseEngine();
  ASSERT_EQ(TryOpenEngine(Options(LLM_ON)), LLM_OK);
  size_t num_tokens = 0;
  EXPECT_NE(llm_prefix_load(engine_, path.data(), path.size(), nullptr, &num_tokens, nullptr),
            LLM_OK);
  EXPECT_THAT(llm_last_error(), HasSubstr("batched"));
  std::remove(path.c_str());
}

TEST_F(EngineDenseOnCudaTest, AStepInWhichOneCallFailsIsRepeated) {
  OpenRounding(Options(LLM_OFF));
  const int64_t before = gpu().num_calls();
  ExpectGoldenTokens();
  const int64_t calls = gpu().num_calls() - before;
  for (int64_t call = 0; call < calls; call += 67) {
    gpu().FailCall(call, cudaErrorUnknown);
    ExpectGoldenTokens();
  }
}

TEST_F(EngineDenseOnCudaTest, AFailedOpenSaysSo) {
  llm_model_options model_options = ModelOptions();
  ASSERT_EQ(TryOpen(PathOf("llama_h64-BF16"), model_options), LLM_OK);
  for (int64_t call = 0;; ++call) {
    gpu().FailCall(call, cudaErrorUnknown);
    const llm_status status = TryOpenEngine(Options(LLM_OFF));
    if (gpu().failed_call() == "cublasLtCreate") {
      EXPECT_EQ(status, LLM_INTERNAL);
      EXPECT_THAT(llm_last_error(), HasSubstr("cuBLASLt: handle"));
      return;
    }
    CloseEngine();
    ASSERT_FALSE(gpu().failed_call().empty());
  }
}

}  // namespace
}  // namespace llm
