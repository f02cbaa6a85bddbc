// Any thread may not be created: the open fails cleanly, leaves none behind, and the next works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <sched.h>

#include <cstdio>
#include <string>

#include "tests/faults/fault_thread.h"
#include "tests/faults/host_state.h"
#include "tests/faults/tiny_host.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNever = int64_t{1} << 40;

// What one call came to, with the text of a failure.
struct Outcome {
  llm_status status = LLM_OK;
  std::string message;
  explicit Outcome(llm_status value) : status(value) {
    if (value != LLM_OK) message = llm_last_error();
  }
};

llm_status OpenModelWithThreads(llm_model** model) {
  const std::string& path = TinyModelPath();
  llm_model_options options;
  llm_model_options_init(&options);
  options.num_threads = 3;
  return llm_model_open(path.data(), path.size(), &options, model);
}

llm_status OpenEngineWithThreads(llm_model* model, uint32_t drive, const llm_host* host,
                                 llm_engine** engine) {
  llm_engine_options options = TinyEngineOptions(drive);
  options.num_threads = 3;
  options.host = host;
  return llm_engine_open(model, &options, engine);
}

// Runs `open` with thread n refused alone, and with all from n on refused, for every n. `open`
// closes what it opened.
template <typename Open>
void ForEachThread(const char* name, Open open) {
  const int threads = NumThreads();
  const size_t descriptors = TakeHostState().descriptors.size();
  {
    const ScopedThreadFault none(kNever, 1);
    ASSERT_EQ(open().status, LLM_OK);
  }
  const int64_t total = NumThreadsWanted();
  ASSERT_GT(total, 0);
  int64_t refused = 0;
  for (const int64_t length : {int64_t{1}, kNever}) {
    for (int64_t first = 0; first < total; ++first) {
      SCOPED_TRACE(testing::Message() << "thread " << first << " of " << total);
      {
        const ScopedThreadFault fault(first, length);
        const Outcome outcome = open();
        EXPECT_EQ(outcome.status, LLM_RESOURCE_EXHAUSTED) << outcome.message;
        EXPECT_THAT(outcome.message, HasSubstr("thread"));
        refused += NumThreadsRefused();
      }
      EXPECT_TRUE(WaitForThreads(threads));
      EXPECT_EQ(TakeHostState().descriptors.size(), descriptors);
      EXPECT_EQ(open().status, LLM_OK) << "the next open works";
    }
  }
  std::printf("%s: %lld threads, %lld refusals injected\n", name, static_cast<long long>(total),
              static_cast<long long>(refused));
}

class ThreadExhaustionTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(OpenTinyModel(&model_), LLM_OK) << llm_last_error(); }
  void TearDown() override { llm_model_release(model_); }

  Outcome OpenAndAsk(uint32_t drive, const llm_host* host) {
    llm_engine* engine = nullptr;
    const Outcome outcome(OpenEngineWithThreads(model_, drive, host, &engine));
    if (outcome.status != LLM_OK) return outcome;
    Answer answer;
    EXPECT_EQ(AskOnce(engine, drive, &answer), LLM_OK);
    EXPECT_EQ(llm_engine_close(engine), LLM_OK);
    return outcome;
  }

  llm_model* model_ = nullptr;
};

TEST_F(ThreadExhaustionTest, AModelOpensOrFailsCleanly) {
  ForEachThread("model open", [] {
    llm_model* model = nullptr;
    const Outcome outcome(OpenModelWithThreads(&model));
    llm_model_release(model);
    return outcome;
  });
}

TEST_F(ThreadExhaustionTest, AnEngineThatTheHostDrivesOpensOrFailsCleanly) {
  ForEachThread("manual engine", [&] { return OpenAndAsk(LLM_DRIVE_MANUAL, nullptr); });
}

TEST_F(ThreadExhaustionTest, AnEngineWithThreadsOpensOrFailsCleanly) {
  ForEachThread("engine with threads", [&] { return OpenAndAsk(LLM_DRIVE_THREADS, nullptr); });
}

// Pinning asks with a thread of its own.
TEST_F(ThreadExhaustionTest, AnEngineWithPinnedThreadsOpensOrFailsCleanly) {
  const int32_t cpu = sched_getcpu();
  llm_host host;
  llm_host_init(&host);
  host.cpu_ids = &cpu;
  host.num_cpu_ids = 1;
  ForEachThread("pinned engine", [&] { return OpenAndAsk(LLM_DRIVE_THREADS, &host); });
}

}  // namespace
}  // namespace llm
