// Log-probabilities of the prompt through the C ABI: llm_score's numbers, before the first token.
#include <gmock/gmock.h>

#include <atomic>
#include <cstddef>
#include <thread>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class AbiPromptTest : public AbiTest {
 protected:
  static std::vector<int32_t> LongText() {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 100; ++i) ids.push_back(3 + i * 31 % 400);
    return ids;
  }
  std::vector<float> ScoresOf(const std::vector<int32_t>& ids) {
    llm_score_request score;
    llm_score_request_init(&score);
    score.ids = ids.data();
    score.num_ids = ids.size();
    std::vector<float> logprobs(ids.size());
    size_t count = 0;
    EXPECT_EQ(llm_score(engine_, &score, logprobs.data(), logprobs.size(), &count), LLM_OK);
    logprobs.resize(count);
    return logprobs;
  }
  static llm_logprob Entry(const llm_event& event, size_t index) {
    llm_logprob entry;
    std::memcpy(&entry, reinterpret_cast<const char*>(event.logprobs) + index * event.logprob_size,
                sizeof(entry));
    return entry;
  }
};

TEST_F(AbiPromptTest, EqualsTheScoreOfThePrompt) {
  Open(LLM_DRIVE_MANUAL);
  const std::vector<int32_t> prompt = LongText();
  const std::vector<float> scores = ScoresOf(prompt);
  llm_request request = Request(prompt);
  request.num_prompt_logprobs = 2;
  request.set = LLM_SET_NUM_LOGPROBS;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  const std::vector<llm_event> events = Poll();
  ASSERT_EQ(events.size(), 3u);
  const llm_event& told = events[0];
  EXPECT_EQ(told.type, uint32_t{LLM_EVENT_PROMPT});
  EXPECT_EQ(told.text.size, 0u);
  EXPECT_EQ(told.logprobs_per_token, 3u);
  EXPECT_THAT(std::vector<int32_t>(told.token_ids, told.token_ids + told.num_tokens),
              ElementsAreArray(prompt.begin() + 1, prompt.end()));
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(Entry(told, 3 * i).id, prompt[i + 1]);
    EXPECT_EQ(Entry(told, 3 * i).logprob, scores[i]) << "token " << i + 1;
    EXPECT_GE(Entry(told, 3 * i + 1).logprob, Entry(told, 3 * i).logprob);
    EXPECT_GE(Entry(told, 3 * i + 1).logprob, Entry(told, 3 * i + 2).logprob);
  }
  EXPECT_EQ(events[1].type, uint32_t{LLM_EVENT_TOKENS});
  EXPECT_EQ(events[1].num_tokens, 4u);
  EXPECT_EQ(events[1].logprobs_per_token, 1u);
  EXPECT_EQ(events[2].type, uint32_t{LLM_EVENT_FINISHED});
}

TEST_F(AbiPromptTest, ZeroMeansTheGivenTokenAloneWhereSetNamesIt) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  EXPECT_EQ(Poll()[0].type, uint32_t{LLM_EVENT_TOKENS});
  request.set = LLM_SET_NUM_PROMPT_LOGPROBS;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  const std::vector<llm_event> events = Poll();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].type, uint32_t{LLM_EVENT_PROMPT});
  EXPECT_EQ(events[0].num_tokens, ids_.size() - 1);
  EXPECT_EQ(events[0].logprobs_per_token, 1u);
}

TEST_F(AbiPromptTest, CallbacksSeeItFirst) {
  Open(LLM_DRIVE_THREADS);
  const std::vector<int32_t> prompt = LongText();
  const std::vector<float> scores = ScoresOf(prompt);
  llm_request request = Request(prompt);
  request.num_prompt_logprobs = 1;
  struct Seen {
    std::vector<float> told;
    size_t tokens = 0;
    std::atomic<bool> finished{false};
  } seen;
  request.user_data = &seen;
  request.on_event = [](void* user_data, const llm_event* event) {
    Seen& to = *static_cast<Seen*>(user_data);
    if (event->type == LLM_EVENT_PROMPT) {
      EXPECT_EQ(to.tokens, 0u);
      for (size_t i = 0; i < event->num_tokens; ++i)
        to.told.push_back(event->logprobs[2 * i].logprob);
    } else {
      to.tokens += event->num_tokens;
    }
    if (event->type == LLM_EVENT_FINISHED) to.finished = true;
  };
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  while (!seen.finished) std::this_thread::yield();
  EXPECT_EQ(seen.told, scores);
  EXPECT_EQ(seen.tokens, 4u);
}

TEST_F(AbiPromptTest, WrongCountsAreNamed) {
  Open(LLM_DRIVE_MANUAL);
  for (const int32_t count : {-1, 21}) {
    llm_request request = Request(ids_);
    request.num_prompt_logprobs = count;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
    EXPECT_THAT(llm_last_error(), HasSubstr("num_prompt_logprobs"));
  }
}

// A caller from before the field: its struct ends earlier, and no PROMPT event comes.
TEST_F(AbiPromptTest, AnOlderCallerIsToldNothing) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.num_prompt_logprobs = 5;
  request.struct_size = offsetof(llm_request, num_prompt_logprobs);
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  for (const llm_event& event : Poll()) EXPECT_NE(event.type, uint32_t{LLM_EVENT_PROMPT});
}

}  // namespace
}  // namespace llm
