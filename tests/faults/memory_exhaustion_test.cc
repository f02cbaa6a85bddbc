// Any allocation of the process may fail, in any call: the call fails cleanly or works, the engine
// serves the next request with the right tokens, and nothing leaks.
#include "tests/faults/memory_exhaustion.h"

#include <iterator>

namespace llm {
namespace {

// One engine's life, with faults in the middle.
class EngineLifeTest : public MemoryExhaustionTest {
 protected:
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
};

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

TEST_F(EngineLifeTest, AnEngineThatTheHostDrivesServesTheNextRequest) {
  ForEachAllocation("manual engine", [](int64_t first) { RunEngine(LLM_DRIVE_MANUAL, first); });
}

TEST_F(EngineLifeTest, AnEngineWithThreadsServesTheNextRequest) {
  ForEachAllocation("engine with threads",
                    [](int64_t first) { RunEngine(LLM_DRIVE_THREADS, first); });
}

}  // namespace
}  // namespace llm
