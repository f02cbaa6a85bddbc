// llm_step_records_read and llm_request_records_read through the C ABI.
#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

class AbiRecordTest : public AbiTest {
 protected:
  void SetUp() override {
    AbiTest::SetUp();
    Open(LLM_DRIVE_MANUAL);
    const llm_request request = Request(ids_);
    ASSERT_EQ(llm_submit(engine_, &request, &id_), LLM_OK) << llm_last_error();
    RunAll();
  }
  llm_request_id id_ = 0;
};

TEST_F(AbiRecordTest, StepsAreReadOnceByEachCursor) {
  for (int reader = 0; reader < 2; ++reader) {
    uint64_t cursor = 0;
    std::vector<llm_step_record> steps(3);
    size_t count = 0;
    ASSERT_EQ(llm_step_records_read(engine_, &cursor, steps.data(), sizeof(steps[0]), 3, &count),
              LLM_OK);
    ASSERT_EQ(count, 3u);
    EXPECT_EQ(steps[0].prefill_tokens, 5u);
    EXPECT_EQ(steps[1].decode_sequences, 1u);
    EXPECT_EQ(steps[2].index, 2u);
    ASSERT_EQ(llm_step_records_read(engine_, &cursor, steps.data(), sizeof(steps[0]), 3, &count),
              LLM_OK);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(cursor, 4u);
    ASSERT_EQ(llm_step_records_read(engine_, &cursor, steps.data(), sizeof(steps[0]), 3, &count),
              LLM_OK);
    EXPECT_EQ(count, 0u);
  }
}

// The step that ends a prompt which is told has both its last PROMPT rows and the first token.
TEST_F(AbiRecordTest, ARequestThatToldItsPromptPausesOnce) {
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.max_pending_bytes = 1;
  llm_engine* engine = nullptr;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine), LLM_OK);
  const std::vector<int32_t> ids(20, 7);
  llm_request request = Request(ids);
  request.set = LLM_SET_NUM_PROMPT_LOGPROBS;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine, &request, &id), LLM_OK);
  ASSERT_EQ(llm_engine_step(engine, nullptr), LLM_OK);
  uint64_t cursor = 0;
  size_t count = 0;
  std::vector<llm_request_record> records(16);
  ASSERT_EQ(llm_request_records_read(engine, &cursor, records.data(), sizeof(records[0]),
                                     records.size(), &count),
            LLM_OK);
  records.resize(count);
  std::vector<int64_t> left_in_cache;
  for (const llm_request_record& record : records) {
    if (record.kind == LLM_RECORD_PAUSED) left_in_cache.push_back(record.detail);
  }
  EXPECT_EQ(left_in_cache, std::vector<int64_t>{20});
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
}

TEST_F(AbiRecordTest, RecordsLieRecordSizeApart) {
  constexpr size_t kApart = sizeof(llm_request_record) + 16;
  std::vector<char> bytes(kApart * 8, 'x');
  uint64_t cursor = 0;
  size_t count = 0;
  ASSERT_EQ(
      llm_request_records_read(
          engine_, &cursor, reinterpret_cast<llm_request_record*>(bytes.data()), kApart, 8, &count),
      LLM_OK)
      << llm_last_error();
  ASSERT_EQ(count, 8u);
  std::vector<uint32_t> kinds;
  for (size_t i = 0; i < count; ++i) {
    llm_request_record record;
    std::memcpy(&record, &bytes[i * kApart], sizeof(record));
    EXPECT_EQ(record.id, id_);
    EXPECT_EQ(bytes[i * kApart + sizeof(record)], 0) << "what a newer caller knows";
    kinds.push_back(record.kind);
  }
  EXPECT_EQ(kinds,
            (std::vector<uint32_t>{LLM_RECORD_ENQUEUED, LLM_RECORD_ADMITTED,
                                   LLM_RECORD_PREFILL_CHUNK, LLM_RECORD_TOKENS, LLM_RECORD_TOKENS,
                                   LLM_RECORD_TOKENS, LLM_RECORD_TOKENS, LLM_RECORD_FINISHED}));
}

TEST_F(AbiRecordTest, AWrongArgumentIsRefused) {
  uint64_t cursor = 0;
  llm_step_record step;
  llm_request_record record;
  size_t count = 0;
  EXPECT_EQ(llm_step_records_read(nullptr, &cursor, &step, sizeof(step), 1, &count),
            LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_step_records_read(engine_, nullptr, &step, sizeof(step), 1, &count),
            LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_step_records_read(engine_, &cursor, nullptr, sizeof(step), 1, &count),
            LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_step_records_read(engine_, &cursor, &step, sizeof(step), 1, nullptr),
            LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_step_records_read(engine_, &cursor, &step, sizeof(step), 0, &count),
            LLM_INVALID_ARGUMENT);
  for (const size_t size : {size_t{0}, sizeof(step) - 8, sizeof(step) + 1, size_t{1} << 20}) {
    EXPECT_EQ(llm_step_records_read(engine_, &cursor, &step, size, 1, &count),
              LLM_INVALID_ARGUMENT);
  }
  EXPECT_EQ(llm_request_records_read(engine_, &cursor, &record, sizeof(record) - 8, 1, &count),
            LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), testing::HasSubstr("record_size"));
  EXPECT_EQ(cursor, 0u);
}

}  // namespace
}  // namespace llm
