// llm_score on a tiny model: against generation, against its own rows, and among other requests.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiScoreTest : public AbiTest {
 protected:
  static llm_score_request Score(const std::vector<int32_t>& ids) {
    llm_score_request request;
    llm_score_request_init(&request);
    request.ids = ids.data();
    request.num_ids = ids.size();
    return request;
  }
  std::vector<float> LogprobsOf(const llm_score_request& request) {
    std::vector<float> logprobs(512);
    size_t count = 0;
    EXPECT_EQ(llm_score(engine_, &request, logprobs.data(), logprobs.size(), &count), LLM_OK)
        << llm_last_error();
    logprobs.resize(count);
    return logprobs;
  }
  static std::vector<int32_t> LongText() {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 100; ++i) ids.push_back(3 + i * 31 % 400);
    return ids;
  }
};

TEST_F(AbiScoreTest, EqualsTheLogProbabilitiesThatGenerationTold) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.max_new_tokens = 40;
  request.set = LLM_SET_NUM_LOGPROBS;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  std::vector<int32_t> text = ids_;
  std::vector<float> expected;
  for (const llm_event& event : Poll()) {
    text.insert(text.end(), event.token_ids, event.token_ids + event.num_tokens);
    for (size_t i = 0; i < event.num_tokens; ++i) expected.push_back(event.logprobs[i].logprob);
  }
  ASSERT_EQ(expected.size(), 40u);
  llm_score_request score = Score(text);
  score.first = ids_.size();
  EXPECT_EQ(LogprobsOf(score), expected);
}

TEST_F(AbiScoreTest, IsBitIdenticalAmongOtherRequests) {
  const std::vector<int32_t> text = LongText();
  Open(LLM_DRIVE_MANUAL);
  const std::vector<float> alone = LogprobsOf(Score(text));
  EXPECT_EQ(alone.size(), text.size() - 1);
  EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
  llm_engine_options options = EngineOptions(LLM_DRIVE_THREADS);
  options.max_step_tokens = 13;
  options.num_threads = 2;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  for (int i = 0; i < 4; ++i) {
    llm_request other = Request(text);
    other.max_new_tokens = 50;
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &other, &id), LLM_OK) << llm_last_error();
  }
  EXPECT_EQ(LogprobsOf(Score(text)), alone);
}

struct Rows {
  std::vector<float> logprobs;
  uint64_t next = 1;
  int32_t result = 0;

  static int32_t Call(void* user_data, const llm_score_row* row) {
    Rows& rows = *static_cast<Rows*>(user_data);
    EXPECT_EQ(row->position, rows.next++);
    double sum = 0;
    for (size_t i = 0; i < row->num_logits; ++i) {
      sum += std::exp(static_cast<double>(row->logits[i]));
    }
    // Both sides round a sum of num_logits exponentials to float once.
    EXPECT_NEAR(row->logprob, static_cast<double>(row->logits[row->id]) - std::log(sum), 1e-5);
    rows.logprobs.push_back(row->logprob);
    return rows.result;
  }
};

TEST_F(AbiScoreTest, TheRowCallbackSeesFullVocabularyLogits) {
  Open(LLM_DRIVE_THREADS);
  const std::vector<int32_t> text = LongText();
  Rows rows;
  llm_score_request score = Score(text);
  score.on_row = &Rows::Call;
  score.user_data = &rows;
  EXPECT_EQ(LogprobsOf(score), rows.logprobs);
  rows = Rows();
  rows.result = 1;
  size_t count = 77;
  EXPECT_EQ(llm_score(engine_, &score, nullptr, 0, &count), LLM_CANCELLED);
  EXPECT_EQ(count, 77u);
  EXPECT_EQ(rows.logprobs.size(), 1u);
}

// What the engine answers to calls from inside its own step, where waiting could never end.
struct Reentry {
  llm_engine* engine = nullptr;
  llm_status close = LLM_OK, shutdown = LLM_OK, score = LLM_OK, step = LLM_OK;

  static int32_t Call(void* user_data, const llm_score_row* row) {
    Reentry& reentry = *static_cast<Reentry*>(user_data);
    llm_score_request request;
    llm_score_request_init(&request);
    request.ids = &row->id;
    request.num_ids = 1;
    size_t count = 0;
    reentry.score = llm_score(reentry.engine, &request, nullptr, 0, &count);
    reentry.step = llm_engine_step(reentry.engine, nullptr);
    reentry.close = llm_engine_close(reentry.engine);
    reentry.shutdown = llm_engine_shutdown(reentry.engine, -1);
    return 1;
  }
};

TEST_F(AbiScoreTest, ARowCallbackThatClosesStepsOrScoresGetsAStatus) {
  for (const uint32_t drive : {LLM_DRIVE_MANUAL, LLM_DRIVE_THREADS}) {
    Open(drive);
    Reentry reentry;
    reentry.engine = engine_;
    const std::vector<int32_t> text = LongText();
    llm_score_request score = Score(text);
    score.on_row = &Reentry::Call;
    score.user_data = &reentry;
    size_t count = 0;
    EXPECT_NE(llm_score(engine_, &score, nullptr, 0, &count), LLM_OK);
    EXPECT_EQ(reentry.close, LLM_FAILED_PRECONDITION);
    EXPECT_EQ(reentry.shutdown, LLM_DEADLINE_EXCEEDED);
    EXPECT_EQ(reentry.score, LLM_FAILED_PRECONDITION);
    EXPECT_EQ(reentry.step, LLM_FAILED_PRECONDITION);
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
    engine_ = nullptr;
  }
}

TEST_F(AbiScoreTest, AShutdownFromACallbackCancelsWhatWaits) {
  for (int call = 0; call < 3; ++call) {
    llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
    options.max_context_tokens = 256;  // which leaves room for pins
    ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK);
    const std::vector<int32_t> text = LongText();
    llm_request request = Request(ids_);
    request.user_data = engine_;
    request.priority = -1;
    request.on_event = [](void* engine, const llm_event*) {
      (void)llm_engine_shutdown(static_cast<llm_engine*>(engine), -1);
    };
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
    const llm_score_request score = Score(text);
    llm_embed_request embed;
    llm_embed_request_init(&embed);
    llm_prefix prefix;
    llm_prefix_init(&prefix);
    embed.ids = prefix.prompt_ids = text.data();
    embed.num_ids = prefix.num_prompt_ids = text.size();
    size_t count = 0;
    llm_pin_id pin = 0;
    llm_status status = LLM_OK;
    if (call == 0) status = llm_score(engine_, &score, nullptr, 0, &count);
    if (call == 1) status = llm_embed(engine_, &embed, nullptr, 0, &count);
    if (call == 2) status = llm_prefix_pin(engine_, &prefix, &pin);
    EXPECT_EQ(status, LLM_CANCELLED) << call << " " << llm_last_error();
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
    engine_ = nullptr;
  }
}

TEST_F(AbiScoreTest, TextIsTokenizedAsAPromptIs) {
  Open(LLM_DRIVE_MANUAL);
  const std::string text = "hello world, hello again";
  size_t count = 0;
  std::vector<int32_t> ids(64);
  ASSERT_EQ(llm_tokenize(model_, text.data(), text.size(), LLM_TEXT_ADD_SPECIAL, ids.data(),
                         ids.size(), &count),
            LLM_OK);
  ids.resize(count);
  llm_score_request score;
  llm_score_request_init(&score);
  score.text = {text.data(), text.size()};
  EXPECT_EQ(LogprobsOf(score), LogprobsOf(Score(ids)));
}

TEST_F(AbiScoreTest, WrongFieldsAreNamed) {
  Open(LLM_DRIVE_MANUAL);
  const auto refused = [&](auto change, llm_status status, const char* names) {
    llm_score_request score = Score(ids_);
    change(score);
    size_t count = 0;
    EXPECT_EQ(llm_score(engine_, &score, nullptr, 0, &count), status) << names;
    EXPECT_THAT(llm_last_error(), HasSubstr(names));
  };
  refused([](llm_score_request& s) { s.first = 5; }, LLM_INVALID_ARGUMENT, "first");
  refused([](llm_score_request& s) { s.first = UINT64_MAX; }, LLM_INVALID_ARGUMENT, "first");
  refused([](llm_score_request& s) { s.num_ids = 1; }, LLM_INVALID_ARGUMENT, "at least 2");
  refused([](llm_score_request& s) { s.text = Str("two"); }, LLM_INVALID_ARGUMENT, "exactly one");
  refused([](llm_score_request& s) { s.ids = nullptr; }, LLM_INVALID_ARGUMENT, "ids");
  refused([](llm_score_request& s) { s.reserved = 1; }, LLM_UNIMPLEMENTED, "reserved");
  refused([](llm_score_request& s) { s.parse_special = 3; }, LLM_INVALID_ARGUMENT, "parse_special");
  const llm_score_request score = Score(ids_);
  size_t count = 0;
  EXPECT_EQ(llm_score(nullptr, &score, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_score(engine_, nullptr, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_score(engine_, &score, nullptr, 3, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_score(engine_, &score, nullptr, 0, nullptr), LLM_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace llm
