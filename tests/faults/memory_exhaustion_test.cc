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

namespace llm {
namespace {

constexpr int kMaxTokens = 6;
const int32_t kPrompt[] = {1, 2, 3, 4, 5};

std::string ModelPath() { return std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf"; }

bool CleanFailure(llm_status status) {
  return status == LLM_RESOURCE_EXHAUSTED || status == LLM_INTERNAL;
}

llm_status OpenModel(llm_model** model) {
  static const std::string path = ModelPath();
  llm_model_options options;
  llm_model_options_init(&options);
  options.num_threads = 2;
  options.kernels = {"reference", 9};
  return llm_model_open(path.data(), path.size(), &options, model);
}

llm_status OpenEngine(llm_model* model, uint32_t drive, llm_engine** engine) {
  llm_engine_options options;
  llm_engine_options_init(&options);
  options.drive = drive;
  options.num_threads = 2;
  options.kv_tokens = 256;
  options.max_step_tokens = 64;
  options.max_sequences = 4;
  return llm_engine_open(model, &options, engine);
}

llm_request PlainRequest() {
  llm_request request;
  llm_request_init(&request);
  request.prompt_ids = kPrompt;
  request.num_prompt_ids = std::size(kPrompt);
  request.max_new_tokens = kMaxTokens;
  request.ignore_eos = LLM_ON;
  return request;
}

// What a test sees of one request. Room for its ids is made before anything can fail.
struct Answer {
  llm_request_id id = 0;
  int32_t ids[kMaxTokens] = {};
  size_t num_ids = 0;
  int num_finished = 0;
  llm_status status = LLM_UNKNOWN;

  void Take(const llm_event& event) {
    for (size_t i = 0; i < event.num_tokens && num_ids < kMaxTokens; ++i) {
      ids[num_ids++] = event.token_ids[i];
    }
    if (event.type != LLM_EVENT_FINISHED) return;
    ++num_finished;
    status = event.status;
  }
};

// Reads events until `answer` has ended; other requests' go to `others`. Polls that fail for want
// of memory are tried again.
void ReadUntilFinished(llm_engine* engine, uint32_t drive, Answer* answer, Answer* other) {
  for (int round = 0; round < 100000 && answer->num_finished == 0; ++round) {
    if (drive == LLM_DRIVE_MANUAL) llm_engine_step(engine, nullptr);
    llm_event events[4];
    size_t count = 0;
    const int64_t wait_ns = drive == LLM_DRIVE_MANUAL ? 0 : 1000000;
    if (llm_poll(llm_engine_queue(engine), events, sizeof(events[0]), 4, wait_ns, &count) !=
        LLM_OK) {
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      (events[i].id == answer->id ? answer : other)->Take(events[i]);
    }
  }
}

class MemoryExhaustionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(OpenModel(&model_), LLM_OK) << llm_last_error();
    llm_engine* engine = nullptr;
    ASSERT_EQ(OpenEngine(model_, LLM_DRIVE_MANUAL, &engine), LLM_OK) << llm_last_error();
    Answer other;
    const llm_request request = PlainRequest();
    ASSERT_EQ(llm_submit(engine, &request, &expected_.id), LLM_OK);
    ReadUntilFinished(engine, LLM_DRIVE_MANUAL, &expected_, &other);
    ASSERT_EQ(llm_engine_close(engine), LLM_OK);
    ASSERT_EQ(expected_.num_ids, size_t{kMaxTokens});
  }
  static void TearDownTestSuite() { llm_model_release(model_); }

  static void ExpectRight(const Answer& answer) {
    EXPECT_EQ(answer.num_finished, 1);
    EXPECT_TRUE(answer.status == LLM_OK || CleanFailure(answer.status)) << answer.status;
    EXPECT_TRUE(answer.status != LLM_OK || answer.num_ids == size_t{kMaxTokens});
    EXPECT_TRUE(std::equal(answer.ids, answer.ids + answer.num_ids, expected_.ids));
  }
  static void ExpectServes(llm_engine* engine, uint32_t drive) {
    Answer answer, other;
    const llm_request request = PlainRequest();
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
      const llm_status opened = OpenEngine(model_, drive, &engine);
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
    const llm_request request = PlainRequest();
    if (llm_submit(engine, &request, &plain->id) != LLM_OK) plain->id = 0;
    const llm_string stop = {"stop here", 9};
    const llm_string word = {"bad", 3};
    const llm_logit_bias bias = {3, 1.0f};
    llm_request full = PlainRequest();
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
    score.ids = kPrompt;
    score.num_ids = std::size(kPrompt);
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
      status = OpenModel(&model);
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
