// Traces of an engine: steps with their parts, requests with their stages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/engine/engine_harness.h"
#include "tests/support/trace_check.h"

namespace llm {
namespace {

std::string TracePath() {
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  return testing::TempDir() + "/inlay_" + name + std::to_string(getpid()) + ".json";
}

TEST(EngineTraceTest, StepsHoldTheirPartsAndRequestsTheirStages) {
  EngineHarness harness;
  const std::string path = TracePath();
  ASSERT_TRUE(harness.engine().trace().Start(path).ok());
  const std::string prompt(40, 'a');  // three steps
  RequestSpec spec = harness.Spec(prompt, 3);
  spec.trace_id = 77;
  const uint64_t id = harness.Submit(spec);
  harness.Submit(harness.Spec("abc", 2));
  harness.RunAll();
  ASSERT_TRUE(harness.engine().trace().Stop().ok());
  const CheckedTrace trace = ReadCheckedTrace(path);
  unlink(path.c_str());

  EXPECT_EQ(trace.Count("step"), harness.engine().Metrics().step.steps_total);
  EXPECT_EQ(trace.Count("forward"), trace.Count("step"));
  EXPECT_EQ(trace.Count("submit"), 2u);
  ASSERT_EQ(trace.threads.size(), 1u) << "manual drive: all on this thread";
  int64_t tokens = 0;
  for (const CheckedTrace::Span& span : trace.threads.begin()->second) {
    if (span.name == "step") tokens += span.args["tokens"].get<int64_t>();
  }
  EXPECT_EQ(static_cast<uint64_t>(tokens), harness.engine().Metrics().step.scheduled_tokens_total);

  ASSERT_EQ(trace.requests.size(), 2u);
  const std::vector<CheckedTrace::Span>& stages = trace.requests.at(id);
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[0].name, "request");
  EXPECT_EQ(stages[0].args["generated_tokens"], 3);
  EXPECT_EQ(stages[0].args["trace_id"], 77);
  EXPECT_EQ(stages[0].end_ns - stages[0].begin_ns, harness.Of(id).stats.total_ns);
  EXPECT_EQ(stages[1].name, "queue");
  EXPECT_EQ(stages[2].name, "prefill");
  EXPECT_EQ(stages[2].end_ns - stages[0].begin_ns, harness.Of(id).stats.ttft_ns);
  EXPECT_EQ(stages[3].name, "decode");
  EXPECT_EQ(stages[1].begin_ns, stages[0].begin_ns);
  EXPECT_EQ(stages[2].begin_ns, stages[1].end_ns);
  EXPECT_EQ(stages[3].begin_ns, stages[2].end_ns);
  EXPECT_EQ(stages[0].end_ns, stages[3].end_ns);
}

TEST(EngineTraceTest, EachChoiceHasATrackOfItsOwn) {
  EngineHarness harness;
  const std::string path = TracePath();
  ASSERT_TRUE(harness.engine().trace().Start(path).ok());
  RequestSpec spec = harness.Spec("abc", 3);
  spec.choices = 2;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  ASSERT_TRUE(harness.engine().trace().Stop().ok());
  const CheckedTrace trace = ReadCheckedTrace(path);
  unlink(path.c_str());
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests.at(id).size(), 4u);
  EXPECT_EQ(trace.requests.at(id + (uint64_t{1} << 40)).size(), 4u);
}

TEST(EngineTraceTest, ARequestThatNeverRanHasItsQueueAlone) {
  EngineHarness harness;
  const std::string path = TracePath();
  ASSERT_TRUE(harness.engine().trace().Start(path).ok());
  const uint64_t id = harness.Submit(harness.Spec("abc", 3));
  harness.clock().AdvanceNs(500);
  ASSERT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  ASSERT_TRUE(harness.engine().trace().Stop().ok());
  const CheckedTrace trace = ReadCheckedTrace(path);
  unlink(path.c_str());
  const std::vector<CheckedTrace::Span>& stages = trace.requests.at(id);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[1].name, "queue");
  EXPECT_EQ(stages[1].end_ns - stages[1].begin_ns, 500);
}

TEST(EngineTraceTest, ATraceThatIsOnAtCloseIsWrittenThen) {
  const std::string path = TracePath();
  {
    EngineHarness harness;
    ASSERT_TRUE(harness.engine().trace().Start(path).ok());
    harness.Submit(harness.Spec("abc", 30));
    harness.Step();
  }
  const CheckedTrace trace = ReadCheckedTrace(path);
  unlink(path.c_str());
  EXPECT_EQ(trace.requests.size(), 1u) << "the close ended it";
  EXPECT_GE(trace.Count("step"), 1u);
}

TEST(EngineTraceTest, TurnsOnAndOffWhileStepsRun) {
  HarnessOptions options;
  options.engine.manual = false;
  EngineHarness harness(options);
  const std::string path = TracePath();
  std::atomic<bool> done{false};
  std::thread caller([&] {
    EventHandler handler;
    handler.call = [](void*, const Event&) {};
    for (int i = 0; i < 200; ++i) {
      RequestSpec spec = harness.Spec("abcdef", 5);
      if (i % 2 == 0) spec.handler = handler;
      harness.Submit(spec);
    }
    done.store(true);
  });
  size_t traces = 0;
  while (traces < 3 || !done.load()) {
    ASSERT_TRUE(harness.engine().trace().Start(path).ok());
    std::this_thread::yield();
    ASSERT_TRUE(harness.engine().trace().Stop().ok());
    ReadCheckedTrace(path);
    ++traces;
  }
  caller.join();
  EXPECT_TRUE(harness.engine().Shutdown(-1).ok());
  unlink(path.c_str());
}

}  // namespace
}  // namespace llm
