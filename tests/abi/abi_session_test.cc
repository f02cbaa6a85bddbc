// llm_session_hint and llm_session_close through the C ABI.
#include <gmock/gmock.h>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using testing::HasSubstr;

class AbiSessionTest : public AbiTest {
 protected:
  // One context of 12 blocks: two prompts of 5 blocks fit beside each other, three do not.
  void OpenSmall() {
    llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
    options.kv_tokens = 192;
    options.max_context_tokens = 160;
    ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  }
  int32_t CachedTokens(int32_t id, uint64_t session_id) {
    const std::vector<int32_t> ids(75, id);
    llm_request request = Request(ids);
    request.session_id = session_id;
    llm_request_id request_id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &request_id), LLM_OK) << llm_last_error();
    RunAll();
    return Poll().back().stats->cached_tokens;
  }
};

TEST_F(AbiSessionTest, AClosedSessionIsEvictedFirst) {
  OpenSmall();
  CachedTokens(7, 1);
  CachedTokens(8, 2);
  EXPECT_EQ(llm_session_close(engine_, 2), LLM_OK) << llm_last_error();
  CachedTokens(9, 3);
  EXPECT_GT(CachedTokens(7, 1), 64);
}

TEST_F(AbiSessionTest, ASessionThatWaitsForAToolIsEvictedLate) {
  OpenSmall();
  CachedTokens(7, 1);
  EXPECT_EQ(llm_session_hint(engine_, 1, LLM_HINT_TOOL_CALL), LLM_OK) << llm_last_error();
  CachedTokens(8, 2);
  CachedTokens(9, 3);
  EXPECT_GT(CachedTokens(7, 1), 64);
}

TEST_F(AbiSessionTest, ASessionThatWaitsForAHumanIsEvictedEarly) {
  OpenSmall();
  CachedTokens(7, 1);
  CachedTokens(8, 2);
  EXPECT_EQ(llm_session_hint(engine_, 2, LLM_HINT_HUMAN), LLM_OK) << llm_last_error();
  CachedTokens(9, 3);
  EXPECT_GT(CachedTokens(7, 1), 64);
}

TEST_F(AbiSessionTest, UnknownSessionsAreHarmlessAndBadHintsNamed) {
  OpenSmall();
  EXPECT_EQ(llm_session_hint(engine_, 77, LLM_HINT_HUMAN), LLM_OK);
  EXPECT_EQ(llm_session_close(engine_, 77), LLM_OK);
  EXPECT_EQ(llm_session_hint(engine_, 1, 3), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("hint: 3"));
  EXPECT_EQ(llm_session_hint(engine_, 0, LLM_HINT_HUMAN), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("session_id"));
  EXPECT_EQ(llm_session_hint(nullptr, 1, LLM_HINT_HUMAN), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_session_close(nullptr, 1), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_engine_shutdown(engine_, 0), LLM_OK);
  EXPECT_EQ(llm_session_close(engine_, 1), LLM_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace llm
