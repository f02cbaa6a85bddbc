// llm_trace_start and llm_trace_stop on an engine with threads, callbacks and several submitting
// threads.
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/abi/abi_fixture.h"
#include "tests/support/trace_check.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

constexpr int kCallers = 4;
constexpr int kRequests = 3;

TEST_F(AbiTest, ATraceHoldsEveryThreadsSpansNested) {
  Open(LLM_DRIVE_THREADS);
  const std::string path = testing::TempDir() + "/inlay_abi_trace" + std::to_string(getpid());
  ASSERT_EQ(llm_trace_start(engine_, path.data(), path.size()), LLM_OK) << llm_last_error();
  EXPECT_EQ(llm_trace_start(engine_, path.data(), path.size()), LLM_FAILED_PRECONDITION);
  EXPECT_THAT(llm_last_error(), HasSubstr(path));
  std::atomic<int> finished{0};
  const auto submit_all = [&] {
    for (int i = 0; i < kRequests; ++i) {
      llm_request request = Request(ids_);
      request.user_data = &finished;
      request.on_event = [](void* user_data, const llm_event* event) {
        if (event->type == LLM_EVENT_FINISHED) ++*static_cast<std::atomic<int>*>(user_data);
      };
      llm_request_id id = 0;
      EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back(submit_all);
  for (std::thread& caller : callers) caller.join();
  while (finished.load() < kCallers * kRequests) std::this_thread::yield();
  ASSERT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);  // the last step and callback are recorded
  ASSERT_EQ(llm_trace_stop(engine_), LLM_OK) << llm_last_error();
  EXPECT_EQ(llm_trace_stop(engine_), LLM_FAILED_PRECONDITION);

  const CheckedTrace trace = ReadCheckedTrace(path);
  unlink(path.c_str());
  EXPECT_EQ(trace.requests.size(), static_cast<size_t>(kCallers * kRequests));
  EXPECT_EQ(trace.Count("submit"), static_cast<size_t>(kCallers * kRequests));
  EXPECT_GE(trace.Count("callback"), static_cast<size_t>(kCallers * kRequests));
  EXPECT_GE(trace.Count("step"), 4u);
  EXPECT_GE(trace.Count("attention"), trace.Count("forward"));
  EXPECT_GE(trace.Count("head"), 4u);
  std::multiset<std::string> names;
  for (const auto& [tid, name] : trace.thread_names) names.insert(name);
  EXPECT_EQ(names.count("engine"), 1u);
  EXPECT_EQ(names.count("delivery"), 1u);
  EXPECT_GE(names.count("caller"), 1u);
}

TEST_F(AbiTest, ATracesPathIsChecked) {
  Open(LLM_DRIVE_MANUAL);
  EXPECT_EQ(llm_trace_start(engine_, "/no/such/folder/t", 17), LLM_NOT_FOUND);
  EXPECT_THAT(llm_last_error(), HasSubstr("/no/such/folder/t"));
  EXPECT_EQ(llm_trace_start(engine_, "a\0b", 3), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_trace_start(engine_, "", 0), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_trace_start(engine_, nullptr, 3), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_trace_start(nullptr, "a", 1), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_trace_stop(nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_trace_stop(engine_), LLM_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace llm
