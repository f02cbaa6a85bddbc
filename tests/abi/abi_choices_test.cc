// Several answers to one prompt, through the C ABI.
#include <gmock/gmock.h>

#include <map>
#include <utility>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

// What came of one choice, or of a request without choices.
struct Answer {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  int num_finished = 0;
  uint64_t seed = 0;
};

struct Answers {
  std::map<uint32_t, Answer> choices;
  int num_finished = 0;
  bool after_finished = false;
  llm_request_stats stats = {};

  void Add(const llm_event& event) {
    after_finished |= num_finished > 0;
    Answer& answer = choices[event.choice];
    if (event.num_tokens > 0) {
      answer.ids.insert(answer.ids.end(), event.token_ids, event.token_ids + event.num_tokens);
    }
    for (size_t i = 0; i < event.num_tokens * event.logprobs_per_token; ++i) {
      answer.logprobs.push_back(event.logprobs[i].logprob);
    }
    if (event.type == LLM_EVENT_CHOICE_FINISHED) {
      ++answer.num_finished;
      answer.seed = event.stats->seed;
    }
    if (event.type != LLM_EVENT_FINISHED) return;
    ++num_finished;
    stats = *event.stats;
  }
};

class AbiChoicesTest : public AbiTest {
 protected:
  llm_request ChoicesRequest(uint32_t choices) const {
    llm_request request = Request(prompt_);
    request.choices = choices;
    request.temperature = 1.0f;
    request.seed = 7;
    request.num_logprobs = 1;
    request.max_new_tokens = 8;
    return request;
  }
  void RunAndPoll(llm_request request, Answers* answers) {
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    for (const llm_event& event : Poll()) {
      EXPECT_EQ(event.id, id);
      answers->Add(event);
    }
    EXPECT_EQ(answers->num_finished, 1);
    EXPECT_FALSE(answers->after_finished);
  }
  llm_metrics_snapshot Metrics() const {
    llm_metrics_snapshot metrics;
    llm_metrics_snapshot_init(&metrics);
    EXPECT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
    return metrics;
  }

  const std::vector<int32_t> prompt_ = std::vector<int32_t>(21, 7);
};

TEST_F(AbiChoicesTest, EachChoiceIsBitForBitTheAnswerToItsSeed) {
  Open(LLM_DRIVE_MANUAL);
  Answers answers;
  RunAndPoll(ChoicesRequest(3), &answers);
  ASSERT_EQ(answers.choices.size(), 3u);
  EXPECT_EQ(answers.stats.prompt_tokens, 21);
  EXPECT_EQ(answers.stats.generated_tokens, 24);
  EXPECT_EQ(answers.stats.seed, 7u);
  EXPECT_EQ(Metrics().computed_tokens_total, 21u + 2u);
  EXPECT_EQ(Metrics().finished_requests_total, 1u);
  EXPECT_NE(answers.choices[0].ids, answers.choices[1].ids);
  for (const auto& [index, choice] : answers.choices) {
    EXPECT_EQ(choice.num_finished, 1) << index;
    ASSERT_EQ(llm_cache_flush(engine_), LLM_OK);
    llm_request request = ChoicesRequest(0);
    request.seed = choice.seed;
    Answers alone;
    RunAndPoll(request, &alone);
    EXPECT_EQ(alone.choices[0].num_finished, 0) << "no CHOICE_FINISHED without choices";
    EXPECT_EQ(alone.choices[0].ids, choice.ids);
    EXPECT_EQ(alone.choices[0].logprobs, choice.logprobs);
  }
}

TEST_F(AbiChoicesTest, OneCallbackGetsThemAllAndTheFinishedLast) {
  Open(LLM_DRIVE_MANUAL);
  Answers polled;
  RunAndPoll(ChoicesRequest(4), &polled);
  Answers called;
  llm_request request = ChoicesRequest(4);
  request.user_data = &called;
  request.on_event = [](void* user_data, const llm_event* event) {
    static_cast<Answers*>(user_data)->Add(*event);
  };
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  EXPECT_EQ(called.num_finished, 1);
  EXPECT_FALSE(called.after_finished);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(called.choices[i].num_finished, 1);
    EXPECT_EQ(called.choices[i].ids, polled.choices[i].ids);
  }
}

TEST_F(AbiChoicesTest, AThreadedEngineCancelsAllChoices) {
  Open(LLM_DRIVE_THREADS);
  llm_request request = ChoicesRequest(5);
  request.max_new_tokens = 80;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  Answers answers;
  while (answers.num_finished == 0) {
    llm_event event;
    size_t count = 0;
    ASSERT_EQ(llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, -1, &count), LLM_OK);
    answers.Add(event);
    llm_cancel(engine_, id);
  }
  ASSERT_EQ(answers.choices.size(), 5u);
  for (const auto& [index, choice] : answers.choices) EXPECT_EQ(choice.num_finished, 1) << index;
}

}  // namespace
}  // namespace llm
