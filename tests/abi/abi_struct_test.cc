// Structs of other sizes than the library's: older callers, newer callers, and garbage.
#include <gmock/gmock.h>

#include <cstddef>
#include <cstring>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

// A caller of a later version, whose request has one more field.
struct NewerRequest {
  llm_request request;
  uint64_t newer_field;
};
struct NewerEvent {
  llm_event event;
  uint64_t newer_field;
};

class AbiStructTest : public AbiTest {
 protected:
  void SetUp() override {
    AbiTest::SetUp();
    Open(LLM_DRIVE_MANUAL);
  }
};

TEST_F(AbiStructTest, AnOlderCallersMissingFieldsTakeTheirDefaults) {
  llm_request request = Request(ids_);
  request.struct_size = offsetof(llm_request, first_token_deadline_ns);
  // What lies beyond the caller's struct is not read.
  request.adapter_id = 7;
  request.first_token_deadline_ns = -1;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  EXPECT_EQ(Poll().back().finish_reason, LLM_FINISH_LENGTH);
}

TEST_F(AbiStructTest, ANewerCallersFieldsMustBeZero) {
  NewerRequest newer;
  std::memset(&newer, 0, sizeof(newer));
  newer.request = Request(ids_);
  newer.request.struct_size = sizeof(newer);
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &newer.request, &id), LLM_OK) << llm_last_error();
  newer.newer_field = 1;
  EXPECT_EQ(llm_submit(engine_, &newer.request, &id), LLM_UNIMPLEMENTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("newer"));
}

TEST_F(AbiStructTest, AnImpossibleSizeIsRefused) {
  for (const uint32_t size : {0u, 3u, 0xffffffffu}) {
    llm_request request = Request(ids_);
    request.struct_size = size;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
    EXPECT_THAT(llm_last_error(), HasSubstr("struct_size"));
    llm_metrics_snapshot metrics;
    metrics.struct_size = size;
    EXPECT_EQ(llm_metrics(engine_, &metrics), LLM_INVALID_ARGUMENT);
  }
}

TEST_F(AbiStructTest, ASizeThatEndsBeforeThePromptIsNamed) {
  llm_request request = Request(ids_);
  request.struct_size = 4;
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("llm_request.struct_size: 4"));
  llm_prefix prefix;
  llm_prefix_init(&prefix);
  prefix.struct_size = 16;
  llm_pin_id pin = 0;
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("llm_prefix.struct_size: 16"));
  llm_score_request score;
  llm_score_request_init(&score);
  score.struct_size = 8;
  size_t count = 0;
  EXPECT_EQ(llm_score(engine_, &score, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("llm_score_request.struct_size: 8"));
}

TEST_F(AbiStructTest, AnOlderCallersOutputIsNotOverrun) {
  llm_metrics_snapshot metrics;
  std::memset(&metrics, 0x5a, sizeof(metrics));
  metrics.struct_size = offsetof(llm_metrics_snapshot, steps_total);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_EQ(metrics.healthy, 1u);
  EXPECT_EQ(metrics.steps_total, 0x5a5a5a5a5a5a5a5au);
}

TEST_F(AbiStructTest, EventsLieEventSizeApart) {
  const llm_request request = Request(ids_);
  llm_request_id first = 0;
  llm_request_id second = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &first), LLM_OK);
  ASSERT_EQ(llm_submit(engine_, &request, &second), LLM_OK);
  uint32_t worked = 0;
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  NewerEvent events[2];
  std::memset(events, 0x5a, sizeof(events));
  size_t count = 0;
  ASSERT_EQ(llm_poll(llm_engine_queue(engine_), &events[0].event, sizeof(NewerEvent), 2, 0, &count),
            LLM_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(events[0].event.id, first);
  EXPECT_EQ(events[1].event.id, second);
  EXPECT_EQ(events[1].newer_field, 0u);
}

TEST_F(AbiStructTest, ModelInfoIsFilled) {
  llm_model_info info;
  llm_model_info_init(&info);
  ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
  EXPECT_GT(info.vocab_size, 0);
  EXPECT_EQ(std::string(info.architecture.data, info.architecture.size), "llama");
  EXPECT_GT(info.weights_bytes, 0u);
}

}  // namespace
}  // namespace llm
