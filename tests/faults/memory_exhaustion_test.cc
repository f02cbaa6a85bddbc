// Any allocation of the process may fail, in any call: the call fails cleanly or works, the engine
// serves the next request with the right tokens, and nothing leaks.
#include <gtest/gtest.h>
#include <inlay/llm.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/faults/fault_malloc.h"
#include "tests/faults/tiny_host.h"

namespace llm {
namespace {

bool CleanFailure(llm_status status) {
  return status == LLM_RESOURCE_EXHAUSTED || status == LLM_INTERNAL;
}

class MemoryExhaustionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(OpenTinyModel(&model_), LLM_OK) << llm_last_error();
    llm_engine* engine = nullptr;
    ASSERT_EQ(OpenTinyEngine(model_, LLM_DRIVE_MANUAL, &engine), LLM_OK) << llm_last_error();
    Answer other;
    const llm_request request = TinyRequest();
    ASSERT_EQ(llm_submit(engine, &request, &expected_.id), LLM_OK);
    ReadUntilFinished(engine, LLM_DRIVE_MANUAL, &expected_, &other);
    ASSERT_EQ(llm_engine_close(engine), LLM_OK);
    ASSERT_EQ(expected_.num_ids, size_t{kTinyTokens});
  }
  static void TearDownTestSuite() { llm_model_release(model_); }

  static void ExpectRight(const Answer& answer) {
    EXPECT_EQ(answer.num_finished, 1);
    EXPECT_TRUE(answer.status == LLM_OK || CleanFailure(answer.status)) << answer.status;
    EXPECT_TRUE(answer.status != LLM_OK || answer.num_ids == size_t{kTinyTokens});
    EXPECT_TRUE(std::equal(answer.ids, answer.ids + answer.num_ids, expected_.ids));
  }
  static void ExpectServes(llm_engine* engine, uint32_t drive) {
    Answer answer, other;
    const llm_request request = TinyRequest();
    ASSERT_EQ(llm_submit(engine, &request, &answer.id), LLM_OK) << llm_last_error();
    ReadUntilFinished(engine, drive, &answer, &other);
    EXPECT_EQ(answer.status, LLM_OK);
    ExpectRight(answer);
  }

  // Runs `body` with allocation n failing, for every n.
  template <typename Body>
  static void ForEachAllocation(const char* name, Body body) {
    for (int i = 0; i < 2; ++i) body(int64_t{1} << 40);  // warms up what stays, and counts
    const int64_t total = NumAllocationsSeen();
    int64_t live = NumLiveAllocations();
    int64_t runs = 0, failed = 0;
    for (int64_t first = 0; first < total && !HasFailure(); ++first, ++runs) {
      SCOPED_TRACE(testing::Message() << "allocation " << first << " of " << total);
      body(first);
      failed += NumAllocationsFailed();
      // What an error path loads once stays; what is lost again the second time leaks.
      if (NumLiveAllocations() > live) {
        live = NumLiveAllocations();
        body(first);
        EXPECT_LE(NumLiveAllocations(), live);
      }
      live = NumLiveAllocations();
    }
    std::printf("%s: %lld runs over %lld allocations, %lld failures injected\n", name,
                static_cast<long long>(runs), static_cast<long long>(total),
                static_cast<long long>(failed));
  }

  // One engine's life, with faults in the middle.
  static void RunEngine(uint32_t drive, int64_t first) {
    llm_engine* engine = nullptr;
    Answer plain, rich;
    {
      const ScopedAllocationFault fault(first, 1);
      const llm_status opened = OpenTinyEngine(model_, drive, &engine);
      if (opened != LLM_OK) {
        EXPECT_TRUE(CleanFailure(opened)) << opened << llm_last_error();
        return;
      }
      UseEngine(engine, drive, &plain, &rich);
    }
    if (plain.id != 0) ExpectRight(plain);
    EXPECT_EQ(rich.num_finished, rich.id != 0 ? 1 : 0);
    ExpectServes(engine, drive);
    EXPECT_EQ(llm_engine_close(engine), LLM_OK) << llm_last_error();
  }

  // Calls nothing of gtest: faults are on.
  static void UseEngine(llm_engine* engine, uint32_t drive, Answer* plain, Answer* rich) {
    llm_trace_start(engine, "/dev/null", 9);
    const llm_request request = TinyRequest();
    if (llm_submit(engine, &request, &plain->id) != LLM_OK) plain->id = 0;
    const llm_string stop = {"stop here", 9};
    const llm_string word = {"bad", 3};
    const llm_logit_bias bias = {3, 1.0f};
    llm_request full = TinyRequest();
    full.prompt_ids = nullptr;
    full.num_prompt_ids = 0;
    full.text = {"Hello, hello", 12};
    full.stop_strings = &stop;
    full.num_stop_strings = 1;
    full.bad_words = &word;
    full.num_bad_words = 1;
    full.logit_bias = &bias;
    full.num_logit_bias = 1;
    full.logit_bias_size = sizeof(bias);
    full.temperature = 1;
    full.top_p = 0.9f;
    full.num_logprobs = 3;
    full.set = LLM_SET_NUM_LOGPROBS;
    if (llm_submit(engine, &full, &rich->id) != LLM_OK) rich->id = 0;
    if (plain->id != 0) ReadUntilFinished(engine, drive, plain, rich);
    if (rich->id != 0) ReadUntilFinished(engine, drive, rich, plain);
    llm_score_request score;
    llm_score_request_init(&score);
    score.ids = kTinyPrompt;
    score.num_ids = std::size(kTinyPrompt);
    float logprobs[8];
    size_t count = 0;
    llm_score(engine, &score, logprobs, 8, &count);
    char text[256];
    llm_metrics_text(engine, text, sizeof(text), &count);
    llm_cache_flush(engine);
    llm_trace_stop(engine);
  }

  static llm_model* model_;
  static Answer expected_;
};

llm_model* MemoryExhaustionTest::model_ = nullptr;
Answer MemoryExhaustionTest::expected_;

TEST_F(MemoryExhaustionTest, AModelOpensOrFailsCleanly) {
  ForEachAllocation("model open", [](int64_t first) {
    llm_model* model = nullptr;
    llm_status status = LLM_OK;
    {
      const ScopedAllocationFault fault(first, 1);
      status = OpenTinyModel(&model);
    }
    EXPECT_TRUE(status == LLM_OK || CleanFailure(status)) << status << llm_last_error();
    llm_model_release(model);
  });
}

TEST_F(MemoryExhaustionTest, AnEngineThatTheHostDrivesServesTheNextRequest) {
  ForEachAllocation("manual engine", [](int64_t first) { RunEngine(LLM_DRIVE_MANUAL, first); });
}

TEST_F(MemoryExhaustionTest, AnEngineWithThreadsServesTheNextRequest) {
  ForEachAllocation("engine with threads",
                    [](int64_t first) { RunEngine(LLM_DRIVE_THREADS, first); });
}

}  // namespace
}  // namespace llm
