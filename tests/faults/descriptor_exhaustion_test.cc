// No descriptor is left: what needs one says so, and what does not goes on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/faults/host_state.h"
#include "tests/faults/tiny_host.h"

namespace llm {
namespace {

// While it lives, no further descriptor can be opened.
class ScopedDescriptorFault {
 public:
  ScopedDescriptorFault() {
    getrlimit(RLIMIT_NOFILE, &saved_);
    const int lowest_free = dup(0);
    close(lowest_free);
    rlimit none = saved_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~ScopedDescriptorFault() { setrlimit(RLIMIT_NOFILE, &saved_); }
  ScopedDescriptorFault(const ScopedDescriptorFault&) = delete;
  ScopedDescriptorFault& operator=(const ScopedDescriptorFault&) = delete;

 private:
  rlimit saved_;
};

class DescriptorExhaustionTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = TakeHostState();
    ASSERT_EQ(OpenTinyModel(&model_), LLM_OK) << llm_last_error();
  }
  void TearDown() override {
    llm_model_release(model_);
    EXPECT_EQ(before_.descriptors, TakeHostState().descriptors);
  }
  HostState before_;
  llm_model* model_ = nullptr;
};

TEST_F(DescriptorExhaustionTest, AQueueWithoutDescriptorIsPolledAllTheSame) {
  llm_engine* engine = nullptr;
  ASSERT_EQ(OpenTinyEngine(model_, LLM_DRIVE_THREADS, &engine), LLM_OK) << llm_last_error();
  int32_t fd = -1;
  {
    const ScopedDescriptorFault fault;
    EXPECT_EQ(llm_queue_fd(llm_engine_queue(engine), &fd), LLM_RESOURCE_EXHAUSTED);
    EXPECT_EQ(fd, -1) << "outputs are untouched on failure";
    EXPECT_NE(std::strstr(llm_last_error(), "eventfd"), nullptr) << llm_last_error();
    Answer answer;
    EXPECT_EQ(AskOnce(engine, LLM_DRIVE_THREADS, &answer), LLM_OK);
    EXPECT_EQ(answer.num_finished, 1);
  }
  ASSERT_EQ(llm_queue_fd(llm_engine_queue(engine), &fd), LLM_OK) << llm_last_error();
  Answer answer;
  EXPECT_EQ(AskOnce(engine, LLM_DRIVE_THREADS, &answer), LLM_OK);
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
}

TEST_F(DescriptorExhaustionTest, OpensThatNeedAFileSayThatNoneIsLeft) {
  const std::string& path = TinyModelPath();
  const int own = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(own, 0);
  llm_engine* engine = nullptr;
  ASSERT_EQ(OpenTinyEngine(model_, LLM_DRIVE_THREADS, &engine), LLM_OK) << llm_last_error();
  {
    const ScopedDescriptorFault fault;
    llm_model* model = nullptr;
    EXPECT_EQ(OpenTinyModel(&model), LLM_RESOURCE_EXHAUSTED) << llm_last_error();
    EXPECT_EQ(model, nullptr);
    EXPECT_NE(std::strstr(llm_last_error(), "open files"), nullptr) << llm_last_error();
    llm_engine* refused = nullptr;
    EXPECT_EQ(OpenTinyEngine(model_, LLM_DRIVE_THREADS, &refused), LLM_RESOURCE_EXHAUSTED)
        << "which limits hold, it cannot read";
    EXPECT_NE(std::strstr(llm_last_error(), "/proc"), nullptr) << llm_last_error();
    EXPECT_EQ(llm_trace_start(engine, "/dev/null", 9), LLM_RESOURCE_EXHAUSTED) << llm_last_error();
    Answer answer;
    EXPECT_EQ(AskOnce(engine, LLM_DRIVE_THREADS, &answer), LLM_OK) << "after the refused trace";
    llm_model_options options;
    llm_model_options_init(&options);
    EXPECT_EQ(llm_model_open_fd(own, 0, 0, &options, &model), LLM_RESOURCE_EXHAUSTED)
        << "how many cores it may use, it cannot read";
    options.num_threads = 1;
    EXPECT_EQ(llm_model_open_fd(own, 0, 0, &options, &model), LLM_OK) << llm_last_error();
    llm_model_release(model);
  }
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  close(own);
}

}  // namespace
}  // namespace llm
