// The rest of the design's promises of the ABI: choices, sources, struct sizes, hooks, what tools
// need.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <type_traits>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiDesignToolsTest : public AbiTest {
 protected:
  static std::string Path() { return std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf"; }
  // The ids of each choice.
  std::map<uint32_t, std::vector<int32_t>> Answer(const llm_request& request) {
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    std::map<uint32_t, std::vector<int32_t>> ids;
    int finished = 0;
    for (const llm_event& event : Poll()) {
      EXPECT_EQ(finished, 0) << "FINISHED is the last event";
      if (event.type == LLM_EVENT_FINISHED) ++finished;
      if (event.type == LLM_EVENT_CHOICE_FINISHED) seeds_[event.choice] = event.stats->seed;
      std::vector<int32_t>& of = ids[event.choice];
      of.insert(of.end(), event.token_ids, event.token_ids + event.num_tokens);
    }
    EXPECT_EQ(finished, 1);
    return ids;
  }

  std::map<uint32_t, uint64_t> seeds_;
};

TEST_F(AbiDesignToolsTest, EachChoiceDrawsWithItsOwnSeedAndThenOneFinishedFollows) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.choices = 3;
  request.temperature = 5;
  request.seed = 11;
  request.set = LLM_SET_SEED;
  const auto together = Answer(request);
  ASSERT_EQ(together.size(), 3u);
  ASSERT_EQ(seeds_.size(), 3u);
  EXPECT_NE(seeds_[1], seeds_[2]);
  request.choices = 1;
  for (uint32_t choice = 0; choice < 3; ++choice) {
    request.seed = seeds_[choice];
    EXPECT_EQ(Answer(request).at(0), together.at(choice)) << choice;
  }
}

TEST_F(AbiDesignToolsTest, AModelOpensFromPathDescriptorMemoryAndCallback) {
  const std::string path = Path();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  std::vector<char> bytes(static_cast<size_t>(lseek(fd, 0, SEEK_END)));
  ASSERT_EQ(pread(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  const llm_read_callback read = [](void* user_data, uint64_t offset, void* buffer, uint64_t size) {
    const auto& all = *static_cast<std::vector<char>*>(user_data);
    const uint64_t count =
        std::min<uint64_t>(size, all.size() - std::min<uint64_t>(offset, all.size()));
    std::memcpy(buffer, all.data() + offset, count);
    return static_cast<int64_t>(count);
  };
  int reports = 0;
  llm_model_options options;
  llm_model_options_init(&options);
  options.progress = [](void* user_data, uint64_t done, uint64_t total) {
    ++*static_cast<int*>(user_data);
    EXPECT_LE(done, total);
    return int32_t{0};
  };
  options.progress_user_data = &reports;
  llm_model* model = nullptr;
  ASSERT_EQ(llm_model_open(path.data(), path.size(), &options, &model), LLM_OK);
  llm_model_release(model);
  ASSERT_EQ(llm_model_open_fd(fd, 0, 0, &options, &model), LLM_OK);
  llm_model_release(model);
  ASSERT_EQ(llm_model_open_memory(bytes.data(), bytes.size(), &options, &model), LLM_OK);
  llm_model_release(model);
  ASSERT_EQ(llm_model_open_reader(read, &bytes, bytes.size(), &options, &model), LLM_OK);
  llm_model_release(model);
  EXPECT_GE(reports, 4);
  options.progress = [](void*, uint64_t, uint64_t) { return int32_t{1}; };
  EXPECT_EQ(llm_model_open_fd(fd, 0, 0, &options, &model), LLM_CANCELLED);
  close(fd);
}

TEST_F(AbiDesignToolsTest, ASwitchIsDefaultOnOrOff) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.ignore_eos = 3;
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("ignore_eos"));
}

TEST_F(AbiDesignToolsTest, EveryArrayOfStructsCarriesItsElementSize) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  const llm_logit_bias bias = {3, 1.0f};
  request.logit_bias = &bias;
  request.num_logit_bias = 1;
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("logit_bias_size"));
  request.logit_bias_size = sizeof(bias);
  request.num_logprobs = 1;
  request.set = LLM_SET_NUM_LOGPROBS;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  EXPECT_EQ(Poll().front().logprob_size, sizeof(llm_logprob));
  struct Newer {
    llm_step_record record;
    uint64_t field;
  } steps[2];
  steps[1].record.index = 77;
  uint64_t cursor = 0;
  size_t count = 0;
  ASSERT_EQ(llm_step_records_read(engine_, &cursor, &steps[0].record, sizeof(Newer), 2, &count),
            LLM_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(steps[1].record.index, 1u);
}

// What a request and an engine carry from version 1 on: that this compiles is the test.
TEST_F(AbiDesignToolsTest, RequestsAndEnginesCarryTheirFieldsFromTheFirstVersion) {
  llm_engine_options options;
  llm_engine_options_init(&options);
  EXPECT_EQ(options.max_sequences + options.max_step_tokens + options.max_queued_requests, 0u);
  EXPECT_EQ(options.max_queued_tokens + options.num_ranks + options.batch_invariant, 0u);
  llm_request request;
  llm_request_init(&request);
  EXPECT_EQ(request.priority, 0);
  EXPECT_EQ(request.first_token_deadline_ns + request.completion_deadline_ns, 0);
  EXPECT_EQ(request.token_gap_target_ns + request.arrival_ns, 0);
  EXPECT_EQ(request.adapter_id + request.session_id + request.trace_id, 0u);
  EXPECT_EQ(request.request_class, 0u);
  EXPECT_EQ(request.cache_salt.size + request.kv_transfer.size, 0u);
  EXPECT_EQ(request.user_data, nullptr);
  static_assert(std::is_trivial_v<llm_request> && std::is_standard_layout_v<llm_request>);
}

TEST_F(AbiDesignToolsTest, ToolsScoreListRecordFlushAndCloseSessions) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.session_id = 5;
  Answer(request);
  llm_score_request score;
  llm_score_request_init(&score);
  score.ids = ids_.data();
  score.num_ids = ids_.size();
  float logprobs[8];
  size_t count = 0;
  EXPECT_EQ(llm_score(engine_, &score, logprobs, 8, &count), LLM_OK);
  EXPECT_EQ(count, ids_.size() - 1);
  llm_tensor_info tensor;
  llm_tensor_info_init(&tensor);
  EXPECT_EQ(llm_model_tensor(model_, 0, &tensor), LLM_OK);
  EXPECT_GT(tensor.size_bytes, 0u);
  llm_step_record step;
  uint64_t cursor = 0;
  EXPECT_EQ(llm_step_records_read(engine_, &cursor, &step, sizeof(step), 1, &count), LLM_OK);
  EXPECT_EQ(step.prefill_tokens, ids_.size());
  llm_request_record record;
  cursor = 0;
  EXPECT_EQ(llm_request_records_read(engine_, &cursor, &record, sizeof(record), 1, &count), LLM_OK);
  EXPECT_EQ(record.kind, static_cast<uint32_t>(LLM_RECORD_ENQUEUED));
  EXPECT_EQ(llm_session_close(engine_, 5), LLM_OK);
  EXPECT_EQ(llm_cache_flush(engine_), LLM_OK);
}

TEST_F(AbiDesignToolsTest, AHostLendsItsMemoryThreadsClockAndLog) {
  struct Lent {
    int64_t allocations = 0;
    int64_t tasks = 0;
    int64_t now_ns = 1;
    int64_t messages = 0;
  } lent;
  llm_host host;
  llm_host_init(&host);
  host.allocate = [](void* user_data, size_t bytes, size_t alignment) {
    ++static_cast<Lent*>(user_data)->allocations;
    void* memory = nullptr;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
  };
  host.deallocate = [](void* user_data, void* memory, size_t) {
    --static_cast<Lent*>(user_data)->allocations;
    std::free(memory);
  };
  host.allocator_user_data = &lent;
  // One after the other: kernels never assume that tasks run at once.
  host.run = [](void* user_data, void (*task)(void*, uint32_t), void* data, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) task(data, i);
    static_cast<Lent*>(user_data)->tasks += count;
  };
  host.executor_user_data = &lent;
  host.now_ns = [](void* user_data) { return static_cast<Lent*>(user_data)->now_ns += 1000; };
  host.clock_user_data = &lent;
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.host = &host;
  options.num_threads = 2;
  options.log = [](void* user_data, int32_t, const char*, uint64_t) {
    ++static_cast<Lent*>(user_data)->messages;
  };
  options.log_user_data = &lent;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  Answer(Request(ids_));
  EXPECT_GT(lent.allocations, 0);
  EXPECT_GT(lent.tasks, 0);
  EXPECT_GT(lent.now_ns, 1000);
  EXPECT_GT(lent.messages, 0);
  ASSERT_EQ(llm_engine_close(engine_), LLM_OK);
  engine_ = nullptr;
  EXPECT_EQ(lent.allocations, 0);
}

TEST_F(AbiDesignToolsTest, LimitsBoundAnUntrustedFile) {
  llm_limits limits;
  llm_limits_init(&limits);
  limits.max_tensors = 2;
  llm_model_options options;
  llm_model_options_init(&options);
  options.limits = &limits;
  const std::string path = Path();
  llm_model* model = nullptr;
  EXPECT_NE(llm_model_open(path.data(), path.size(), &options, &model), LLM_OK);
  EXPECT_THAT(llm_last_error(), HasSubstr("tensors"));
}

}  // namespace
}  // namespace llm
