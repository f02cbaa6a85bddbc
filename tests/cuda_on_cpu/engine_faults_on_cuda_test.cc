// Calls of the CUDA runtime that fail, one after the other, while an engine opens and while it
// steps.
#include "gmock/gmock.h"
#include "tests/cuda_on_cpu/engine_on_cuda_fixture.h"

namespace llm {
namespace {

using testing::HasSubstr;

// What such a call should have given back is lost with it.
bool GivesBack(const std::string& call) {
  return call.find("Free") != std::string::npos || call.find("Destroy") != std::string::npos;
}

class EngineFaultsOnCudaTest : public EngineOnCudaTest {
 protected:
  void SetUp() override { prompt_ = Golden("llama_h64-F32")["prompts"][0]; }
  std::vector<int32_t> ids() const { return prompt_["ids"].get<std::vector<int32_t>>(); }
  std::vector<int32_t> Expected(size_t count) const {
    auto tokens = prompt_["greedy"].get<std::vector<int32_t>>();
    tokens.resize(count);
    return tokens;
  }
  // Both opens; what they leave when one fails is closed.
  llm_status TryBoth() {
    llm_status status = TryOpen(PathOf("llama_h64-F32"), ModelOptions());
    if (status == LLM_OK) status = TryOpenEngine(EngineOptions());
    error_ = llm_last_error();
    CloseEngine();
    CloseModel();
    return status;
  }

  nlohmann::json prompt_;
  std::string error_;
};

TEST_F(EngineFaultsOnCudaTest, AnOpenThatFailsSaysSoAndLeavesNothing) {
  int failed = 0;
  bool all_calls = false;
  for (int64_t call = 0; !all_calls; ++call) {
    gpu().FailCall(call, call % 2 == 0 ? cudaErrorUnknown : cudaErrorMemoryAllocation);
    const llm_status status = TryBoth();
    all_calls = gpu().failed_call().empty();
    if (GivesBack(gpu().failed_call())) {
      EXPECT_EQ(status, LLM_OK) << gpu().failed_call();
      continue;  // the leak is the call's
    }
    SCOPED_TRACE(testing::Message() << "call " << call << ", " << gpu().failed_call());
    if (status != LLM_OK) {
      ++failed;
      EXPECT_EQ(status, call % 2 == 0 ? LLM_INTERNAL : LLM_RESOURCE_EXHAUSTED) << error_;
      EXPECT_THAT(error_, HasSubstr("cudaError"));
    }
  }
  EXPECT_GT(failed, 20);
}

TEST_F(EngineFaultsOnCudaTest, NoFailedOpenLeaksMemoryOrStreams) {
  ASSERT_EQ(TryBoth(), LLM_OK) << error_;
  const size_t streams = gpu().num_streams();
  for (int64_t call = 0; call == 0 || !gpu().failed_call().empty(); ++call) {
    const size_t device = memory().allocated_bytes(), pinned = memory().pinned_bytes();
    gpu().FailCall(call, cudaErrorUnknown);
    TryBoth();
    if (GivesBack(gpu().failed_call())) continue;
    EXPECT_EQ(memory().allocated_bytes(), device) << "call " << call << gpu().failed_call();
    EXPECT_EQ(memory().pinned_bytes(), pinned) << "call " << call << gpu().failed_call();
  }
  EXPECT_LE(gpu().num_streams(), streams + 8);  // but those whose end failed
}

// A third of the calls of a prompt's step and of two decodes, graphs and all, on one engine.
TEST_F(EngineFaultsOnCudaTest, AStepInWhichOneCallFailsIsRepeated) {
  Open("llama_h64-F32");
  bool all_calls = false;
  int64_t call = 0;
  for (; !all_calls; call += 3) {
    gpu().FailCall(call, cudaErrorUnknown);
    const llm_request_id first = Submit(ids(), 3);
    const llm_request_id second = Submit(ids(), 2);
    RunAll();
    all_calls = gpu().failed_call().empty();
    gpu().FailCall(int64_t{1} << 30, cudaErrorUnknown);  // no other call
    Poll();
    EXPECT_EQ(answers_[first].ids, Expected(3)) << answers_[first].message << " at call " << call;
    EXPECT_EQ(answers_[second].ids, Expected(2)) << answers_[second].message;
    answers_.clear();
  }
  EXPECT_GT(call, 80);
}

TEST_F(EngineFaultsOnCudaTest, ALostDeviceEndsEveryRequestOnceWithItsCause) {
  for (const int64_t call : {0, 1, 9, 60, 120}) {
    SCOPED_TRACE(call);
    Open("llama_h64-F32");
    for (int i = 0; i < 3; ++i) Submit(ids(), 8);
    uint32_t worked = 0;
    ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
    gpu().BreakCall(call);
    RunAll();
    Poll();
    ASSERT_EQ(answers_.size(), 3u);
    for (const auto& [id, answer] : answers_) {
      EXPECT_EQ(answer.num_finished, 1);
      EXPECT_EQ(answer.status, LLM_INTERNAL);
      EXPECT_THAT(answer.message, HasSubstr("the device is lost"));
      EXPECT_THAT(answer.message, HasSubstr("cudaErrorIllegalAddress"));
      EXPECT_LE(answer.ids.size(), 8u);
      EXPECT_EQ(answer.ids, Expected(answer.ids.size()));
    }
    llm_request_id id = 0;
    EXPECT_NE(TrySubmit(ids(), 1, &id), LLM_OK);
    EXPECT_THAT(llm_last_error(), HasSubstr("the device is lost"));
    answers_.clear();
    CloseEngine();
    CloseModel();
    gpu().Reset();
  }
}

}  // namespace
}  // namespace llm
