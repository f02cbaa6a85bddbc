// A trace goes where the host says: to a pipe that nobody reads, or beyond what may be written.
#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/faults/host_state.h"
#include "tests/faults/tiny_host.h"

namespace llm {
namespace {

class TraceSinkTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = TakeHostState();
    ASSERT_EQ(OpenTinyModel(&model_), LLM_OK) << llm_last_error();
    ASSERT_EQ(OpenTinyEngine(model_, LLM_DRIVE_MANUAL, &engine_), LLM_OK) << llm_last_error();
  }
  void TearDown() override {
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK) << llm_last_error();
    llm_model_release(model_);
    EXPECT_TRUE(WaitForThreads(before_.num_threads));
    EXPECT_EQ(Differences(before_, TakeHostState()), "");
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE) + sigismember(&pending, SIGXFSZ), 0);
  }
  llm_status Start(const std::string& path) {
    return llm_trace_start(engine_, path.data(), path.size());
  }
  void Ask() {
    Answer answer;
    EXPECT_EQ(AskOnce(engine_, LLM_DRIVE_MANUAL, &answer), LLM_OK);
  }

  HostState before_;
  llm_model* model_ = nullptr;
  llm_engine* engine_ = nullptr;
};

TEST_F(TraceSinkTest, APipeThatNobodyReadsLosesTheTraceAlone) {
  for (const bool at_close : {false, true}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(Start("/proc/self/fd/" + std::to_string(ends[1])), LLM_OK) << llm_last_error();
    close(ends[0]);
    close(ends[1]);
    Ask();
    if (at_close) {
      EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
      ASSERT_EQ(OpenTinyEngine(model_, LLM_DRIVE_MANUAL, &engine_), LLM_OK);
    } else {
      EXPECT_EQ(llm_trace_stop(engine_), LLM_DATA_LOSS);
    }
    Ask();
  }
}

TEST_F(TraceSinkTest, AFifoWithoutReaderIsNotWaitedFor) {
  const std::string path = testing::TempDir() + "trace_fifo_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(Start(path), LLM_OK);
  EXPECT_NE(std::string(llm_last_error()).find(path), std::string::npos) << llm_last_error();
  unlink(path.c_str());
  Ask();
}

TEST_F(TraceSinkTest, AFileBeyondTheProcessesLimitLosesTheTraceAlone) {
  const std::string path = testing::TempDir() + "trace_limit_" + std::to_string(getpid());
  ASSERT_EQ(Start(path), LLM_OK) << llm_last_error();
  Ask();
  rlimit saved;
  getrlimit(RLIMIT_FSIZE, &saved);
  rlimit small = saved;
  small.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &small);
  const llm_status stopped = llm_trace_stop(engine_);
  setrlimit(RLIMIT_FSIZE, &saved);
  EXPECT_EQ(stopped, LLM_DATA_LOSS);
  unlink(path.c_str());
  Ask();
}

}  // namespace
}  // namespace llm
