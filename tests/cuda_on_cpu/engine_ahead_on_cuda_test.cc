// Engines whose GPU begins a step of decodes before the host has looked at the step before: the
// same answers, and no request that fails because a step could not begin.
#include "tests/cuda_on_cpu/llama_on_cuda_fixture.h"

namespace llm {
namespace {

class EngineAheadOnCudaTest : public LlamaOnCudaTest {
 protected:
  void OpenWith(uint32_t run_ahead, uint32_t graphs = 0) {
    llm_engine_options options = EngineOptions();
    options.run_ahead = run_ahead;
    options.graphs = graphs;
    Open(kModel, options);
  }
  // Requests of several lengths and kinds that come, go and are cancelled; what each was answered.
  std::vector<std::vector<int32_t>> Serve(uint32_t run_ahead, uint32_t graphs) {
    OpenWith(run_ahead, graphs);
    std::vector<llm_request_id> ids = {SubmitDrawn(Ids(0), 34), Submit(Ids(0), 21)};
    Steps(4);
    ids.push_back(SubmitDrawn(Ids(1), 5));
    const llm_request_id cancelled = Submit(Ids(1), 30);
    Steps(5);
    EXPECT_EQ(llm_cancel(engine_, cancelled), LLM_OK);
    ids.push_back(SubmitDrawn(Ids(0), 9, /*presence_penalty=*/0.7f));
    Steps(2);
    ids.push_back(Submit(Ids(1), 3));
    return Finish(ids);
  }
};

TEST_F(EngineAheadOnCudaTest, RequestsThatComeAndGoGetTheSameTokens) {
  const std::vector<std::vector<int32_t>> expected = Serve(LLM_OFF, LLM_OFF);
  EXPECT_EQ(metrics_.ahead_steps_total, 0u);
  EXPECT_EQ(Serve(LLM_ON, LLM_OFF), expected);
  EXPECT_GT(metrics_.ahead_steps_total, 20u);
  EXPECT_EQ(metrics_.graph_steps_total, 0u);
  EXPECT_EQ(Serve(0, 0), expected);
  EXPECT_GT(metrics_.ahead_steps_total, 20u);
  EXPECT_GT(metrics_.graph_steps_total, 20u);
  EXPECT_EQ(metrics_.failed_steps_total, 0u);
}

TEST_F(EngineAheadOnCudaTest, EveryDecodeOfALoneRequestHasBegunBefore) {
  OpenWith(LLM_ON);
  const llm_request_id id = Submit(Ids(0), 8);
  RunAll();
  Poll();
  EXPECT_EQ(answers_[id].ids, Expected(8));
  EXPECT_EQ(Metrics().ahead_steps_total, 7u);
  EXPECT_EQ(Metrics().ahead_dropped_total, 0u);
}

// The host waits for the step that it was asked for, and not for the one behind it.
TEST_F(EngineAheadOnCudaTest, TheNextStepIsOnItsWayWhenTokensAreTold) {
  OpenWith(LLM_ON, LLM_OFF);
  const llm_request_id id = Submit(Ids(0), 8);
  Steps(3);
  Poll();
  EXPECT_EQ(answers_[id].ids, Expected(3));
  EXPECT_TRUE(gpu().has_work());
  const llm_request_id last = Submit(Ids(0), 2);  // nothing begins while somebody could start
  const int64_t before = gpu().num_calls();
  Steps(1);
  EXPECT_LT(gpu().num_calls() - before, 20);  // what the step needed had been put there before
  EXPECT_FALSE(gpu().has_work());
  Poll();
  EXPECT_EQ(answers_[id].ids, Expected(4));
  EXPECT_TRUE(answers_[last].ids.empty());
  RunAll();
  Poll();
  EXPECT_EQ(answers_[id].ids, Expected(8));
  EXPECT_EQ(answers_[last].ids, Expected(2));
}

TEST_F(EngineAheadOnCudaTest, PenaltiesWaitForTheTokenBefore) {
  OpenWith(LLM_ON);
  SubmitDrawn(Ids(0), 8, /*presence_penalty=*/0.5f);
  RunAll();
  EXPECT_EQ(Metrics().ahead_steps_total, 0u);
}

TEST_F(EngineAheadOnCudaTest, WhatStepsAheadTakeIsPlanned) {
  uint64_t without = 0;
  for (const uint32_t run_ahead : {LLM_OFF, LLM_ON}) {
    llm_engine_options options = EngineOptions();
    options.run_ahead = run_ahead;
    llm_memory_plan plan;
    ASSERT_EQ(TryPlan(PathOf(kModel), ModelOptions(), options, &plan), LLM_OK) << llm_last_error();
    const size_t before = memory().allocated_bytes() + memory().pinned_bytes();
    Open(kModel, options);
    Submit(Ids(0), 6);
    RunAll();
    EXPECT_LE(memory().allocated_bytes() + memory().pinned_bytes() - before,
              plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
    EXPECT_GT(plan.workspace_bytes, without);
    without = plan.workspace_bytes;
    Poll();
    answers_.clear();
    CloseEngine();
    CloseModel();
  }
}

// Whatever fails of the step ahead is nobody's failure; what fails of this one is repeated.
TEST_F(EngineAheadOnCudaTest, AnyOneCallThatFailsChangesNoAnswer) {
  for (const uint32_t graphs : {LLM_OFF, LLM_ON}) {
    OpenWith(LLM_ON, graphs);
    Submit(Ids(0), 9);
    RunAll();  // graphs are recorded
    Poll();
    answers_.clear();
    int num_failed = 0;
    for (int64_t call = 0; call < 150; call += graphs == LLM_ON ? 2 : 11) {
      const llm_request_id id = Submit(Ids(0), 4);
      Steps(2);
      gpu().FailCall(call, cudaErrorUnknown);
      RunAll();
      if (gpu().failed_call().empty()) break;  // the request ends before
      ++num_failed;
      Poll();
      ASSERT_EQ(answers_[id].ids, Expected(4))
          << answers_[id].message << " at call " << call << ", " << gpu().failed_call();
      answers_.clear();
    }
    EXPECT_GT(num_failed, 8);
    gpu().Reset();
    CloseEngine();
    CloseModel();
    gpu().Reset();
  }
}

TEST_F(EngineAheadOnCudaTest, ADeviceThatIsLostEndsEveryRequestOnce) {
  for (int64_t call = 0; call < 60; call += 9) {
    SCOPED_TRACE(call);
    OpenWith(LLM_ON);
    Submit(Ids(0), 12);
    Steps(5);
    ExpectEndsAsLostAt(call);
    if (HasFatalFailure()) return;
  }
}

// With work of nobody's on the stream.
TEST_F(EngineAheadOnCudaTest, AnEngineThatIsClosedWaitsForWhatHasBegun) {
  const size_t before = memory().allocated_bytes();
  OpenWith(LLM_ON);
  Submit(Ids(0), 30);
  Steps(6);
  CloseEngine();
  CloseModel();
  EXPECT_EQ(memory().allocated_bytes(), before);
  EXPECT_EQ(gpu().fault(), "");
}

}  // namespace
}  // namespace llm
