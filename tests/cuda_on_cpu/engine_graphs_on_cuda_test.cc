// Engines whose steps of decodes are graphs: the same answers, less to do for the host, and no
// request that fails because a graph cannot be made.
#include "tests/cuda_on_cpu/llama_on_cuda_fixture.h"

namespace llm {
namespace {

class EngineGraphsOnCudaTest : public LlamaOnCudaTest {
 protected:
  // Requests of several lengths that come and go; what each was answered, in their order.
  std::vector<std::vector<int32_t>> Serve(uint32_t graphs) {
    llm_engine_options options = EngineOptions();
    options.graphs = graphs;
    Open(kModel, options);
    std::vector<llm_request_id> ids = {SubmitDrawn(Ids(0), 14)};
    Steps(4);
    ids.push_back(SubmitDrawn(Ids(1), 5));
    ids.push_back(SubmitDrawn(Ids(0), 3));
    Steps(3);
    ids.push_back(SubmitDrawn(Ids(0), 9));
    return Finish(ids);
  }
};

TEST_F(EngineGraphsOnCudaTest, RequestsThatComeAndGoGetTheSameTokens) {
  const std::vector<std::vector<int32_t>> expected = Serve(LLM_OFF);
  gpu().set_graphs(false);
  EXPECT_EQ(Serve(LLM_ON), expected);
  EXPECT_EQ(gpu().num_graph_launches(), 0);
  gpu().set_graphs(true);
  EXPECT_EQ(Serve(0), expected);
  EXPECT_GT(gpu().num_graph_launches(), 5);
}

TEST_F(EngineGraphsOnCudaTest, AGraphIsOneCallInThePlaceOfMany) {
  llm_engine_options options = EngineOptions();
  options.run_ahead = LLM_OFF;  // each step's calls are its own
  Open(kModel, options);
  const llm_request_id id = Submit(Ids(0), 6);
  const auto calls_of_a_step = [&] {
    const int64_t before = gpu().num_calls();
    Steps(1);
    return gpu().num_calls() - before;
  };
  const int64_t prompt = calls_of_a_step(), launched = calls_of_a_step();
  const int64_t recorded = calls_of_a_step(), replayed = calls_of_a_step();
  EXPECT_GT(prompt, 60);
  EXPECT_GT(launched, 60);
  EXPECT_GT(recorded, launched - 20);
  EXPECT_LT(replayed, 30);
  RunAll();
  Poll();
  EXPECT_EQ(answers_[id].ids, Expected(6));
  EXPECT_EQ(Metrics().graph_steps_total, 4u);
  EXPECT_EQ(Metrics().graph_failures_total, 0u);
}

// What graphs take is kept for them from the start.
TEST_F(EngineGraphsOnCudaTest, GraphsStayWithinThePlan) {
  llm_memory_plan plan;
  ASSERT_EQ(TryPlan(PathOf(kModel), ModelOptions(), EngineOptions(), &plan), LLM_OK)
      << llm_last_error();
  Open(kModel);
  const size_t opened = memory().allocated_bytes();
  for (const int count : {1, 2, 4, 1}) {  // each bucket of rows, twice and more
    for (int i = 0; i < count; ++i) Submit(Ids(0), 5);
    RunAll();
  }
  EXPECT_GT(memory().allocated_bytes(), opened);
  EXPECT_LE(memory().allocated_bytes() + memory().pinned_bytes(),
            plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
  CloseEngine();
  CloseModel();
  EXPECT_EQ(memory().allocated_bytes(), 0u);
}

// Distances grow: after a first failure two steps go without, after a second one four.
TEST_F(EngineGraphsOnCudaTest, WithoutMemoryForAGraphStepsAreLaunchedUntilThereIsSome) {
  llm_engine_options options = EngineOptions();
  options.run_ahead = LLM_OFF;  // a step is one of the device's too
  Open(kModel, options);
  gpu().set_graphs(false);
  const llm_request_id id = Submit(Ids(0), 16);
  Steps(9);  // the prompt, the first of its shape, a failure, two without, a failure, three without
  EXPECT_EQ(Metrics().graph_failures_total, 2u);
  EXPECT_EQ(Metrics().graph_steps_total, 0u);
  gpu().set_graphs(true);
  Steps(1);
  EXPECT_EQ(Metrics().graph_steps_total, 0u);
  Steps(3);
  EXPECT_EQ(Metrics().graph_steps_total, 3u);
  RunAll();
  Poll();
  EXPECT_EQ(Metrics().graph_failures_total, 2u);
  EXPECT_EQ(Metrics().failed_steps_total, 0u);
  EXPECT_EQ(answers_[id].status, LLM_OK) << answers_[id].message;
  EXPECT_EQ(answers_[id].ids, Expected(16));
}

// As frameworks do that live in the same process; it is of our own thread here, and of all.
TEST_F(EngineGraphsOnCudaTest, AHostThatCapturesItsOwnStreamsIsNotDisturbed) {
  const StreamOwner stream = std::move(CreateStream()).value();
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  Open(kModel);
  const llm_request_id id = Submit(Ids(0), 5);
  RunAll();
  Poll();
  EXPECT_EQ(answers_[id].ids, Expected(5)) << answers_[id].message;
  EXPECT_EQ(Metrics().graph_steps_total, 3u);
  EXPECT_EQ(Metrics().graph_failures_total, 0u);
  CloseEngine();
  CloseModel();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  const GraphOwner owner(graph);
  EXPECT_EQ(gpu().num_captures(), 1);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(EngineGraphsOnCudaTest, AGraphThatCannotBeMadeFailsNoStep) {
  for (const char* call : {"cudaGraphCreate", "LoadKernel", "cudaGraphAddKernelNode",
                           "cudaGraphInstantiate", "cudaGraphLaunch", "cudaGraphDestroy"}) {
    SCOPED_TRACE(call);
    Open(kModel);
    gpu().FailNext(call, cudaErrorMemoryAllocation);
    const llm_request_id id = Submit(Ids(0), 5);
    RunAll();
    Poll();
    EXPECT_EQ(gpu().failed_call(), call);
    EXPECT_EQ(answers_[id].status, LLM_OK) << answers_[id].message;
    EXPECT_EQ(answers_[id].ids, Expected(5));
    EXPECT_EQ(Metrics().failed_steps_total, 0u);
    const bool is_lost = std::string(call) != "cudaGraphDestroy";
    EXPECT_EQ(Metrics().graph_failures_total, is_lost ? 1u : 0u);
    answers_.clear();
    CloseEngine();
    CloseModel();
  }
}

TEST_F(EngineGraphsOnCudaTest, AStepThroughAGraphInWhichOneCallFailsIsRepeated) {
  Open(kModel);
  Submit(Ids(0), 5);
  RunAll();
  Poll();
  answers_.clear();
  const int64_t launches = gpu().num_graph_launches();
  EXPECT_GT(launches, 0);
  for (int64_t call = 0; call < 20; ++call) {
    const llm_request_id id = Submit(Ids(0), 3);
    Steps(1);  // the prompt
    gpu().FailCall(call, cudaErrorUnknown);
    RunAll();
    EXPECT_FALSE(gpu().failed_call().empty());
    Poll();
    EXPECT_EQ(answers_[id].ids, Expected(3))
        << answers_[id].message << " at call " << call << ", " << gpu().failed_call();
    answers_.clear();
  }
  EXPECT_GT(gpu().num_graph_launches(), launches);
}

// In the middle of a graph as between two launches: the cause is said once to each request.
TEST_F(EngineGraphsOnCudaTest, ADeviceThatIsLostInAGraphEndsEveryRequestOnce) {
  for (int64_t call = 0; call < 16; call += 3) {
    SCOPED_TRACE(call);
    Open(kModel);
    Submit(Ids(0), 9);
    Steps(4);
    EXPECT_GT(gpu().num_graph_launches(), 0);
    ExpectEndsAsLostAt(call);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace llm
