// Right and wrong use of the C ABI, on a tiny model.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

TEST_F(AbiTest, AnswersARequestByPoll) {
  Open(LLM_DRIVE_THREADS);
  const llm_request request = Request(ids_);
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  size_t tokens = 0;
  for (bool finished = false; !finished;) {
    llm_event event;
    size_t count = 0;
    ASSERT_EQ(llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, -1, &count), LLM_OK);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(event.id, id);
    tokens += event.num_tokens;
    if (event.type != LLM_EVENT_FINISHED) continue;
    finished = true;
    EXPECT_EQ(event.finish_reason, LLM_FINISH_LENGTH);
    EXPECT_EQ(event.status, LLM_OK);
    ASSERT_NE(event.stats, nullptr);
    EXPECT_EQ(event.stats->prompt_tokens, 5);
    EXPECT_EQ(event.stats->generated_tokens, 4);
  }
  EXPECT_EQ(tokens, 4u);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_EQ(metrics.healthy, 1u);
  EXPECT_EQ(metrics.finished_requests_total, 1u);
  EXPECT_GT(metrics.memory_bytes_current, metrics.kv_bytes_current);
}

TEST_F(AbiTest, CallsBackWithUserDataInsideAManualStep) {
  Open(LLM_DRIVE_MANUAL);
  int finished = 0;
  llm_request request = Request(ids_);
  request.user_data = &finished;
  request.on_event = [](void* user_data, const llm_event* event) {
    if (event->type == LLM_EVENT_FINISHED) ++*static_cast<int*>(user_data);
  };
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
  RunAll();
  EXPECT_EQ(finished, 1);
}

TEST_F(AbiTest, BiasPenaltiesAndTheLeastLengthReachTheSampler) {
  Open(LLM_DRIVE_MANUAL);
  const llm_logit_bias bias[] = {{9, 1000.0f}, {10, 980.0f}};
  const auto answer = [&](auto change) {
    llm_request request = Request(ids_);
    request.logit_bias = bias;
    request.num_logit_bias = 2;
    request.logit_bias_size = sizeof(llm_logit_bias);
    change(request);
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    std::vector<int32_t> ids;
    for (const llm_event& event : Poll()) {
      ids.insert(ids.end(), event.token_ids, event.token_ids + event.num_tokens);
    }
    return ids;
  };
  EXPECT_EQ(answer([](llm_request&) {}), (std::vector<int32_t>{9, 9, 9, 9}));
  EXPECT_EQ(answer([](llm_request& r) { r.repetition_penalty = 4.0f; })[1], 10);
  const auto frequency = [](llm_request& r) { r.frequency_penalty = 2.0f, r.max_new_tokens = 30; };
  EXPECT_THAT(answer(frequency), ::testing::Contains(10)) << "within 2 x 30 logits of the bias";
  const int32_t stop = 9;
  const auto stopping = [&](llm_request& r) { r.stop_ids = &stop, r.num_stop_ids = 1; };
  EXPECT_EQ(answer(stopping).size(), 1u);
  EXPECT_EQ(answer([&](llm_request& r) {
              stopping(r);
              r.min_new_tokens = 2;
            }),
            (std::vector<int32_t>{10, 10, 9}));
}

TEST_F(AbiTest, ABadWordIsNeverDrawn) {
  Open(LLM_DRIVE_MANUAL);
  const char* word = "hello";
  std::vector<int32_t> ids(16);
  size_t count = 0;
  ASSERT_EQ(llm_tokenize(model_, word, 5, 0, ids.data(), ids.size(), &count), LLM_OK);
  const llm_logit_bias bias = {ids[0], 1000.0f};
  llm_request request = Request(ids_);
  request.logit_bias = &bias;
  request.num_logit_bias = 1;
  request.logit_bias_size = sizeof(bias);
  std::string text;
  llm_detokenize(model_, ids.data(), 1, 0, nullptr, 0, &count);
  text.resize(count);
  llm_detokenize(model_, ids.data(), 1, 0, text.data(), text.size(), &count);
  const llm_string bad = {text.data(), text.size()};
  for (const size_t num_bad_words : {0u, 1u}) {
    request.bad_words = &bad;
    request.num_bad_words = num_bad_words;
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    const std::vector<llm_event> events = Poll();
    ASSERT_GT(events[0].num_tokens, 0u);
    EXPECT_EQ(events[0].token_ids[0] == ids[0], num_bad_words == 0);
  }
  request.num_bad_words = 1;
  request.bad_words = nullptr;
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("bad_words"));
}

TEST_F(AbiTest, AFlushEmptiesThePrefixCache) {
  Open(LLM_DRIVE_MANUAL);
  const std::vector<int32_t> ids(40, 7);
  const llm_request request = Request(ids);
  const auto cached_tokens = [&] {
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    return Poll().back().stats->cached_tokens;
  };
  EXPECT_EQ(cached_tokens(), 0);
  EXPECT_GT(cached_tokens(), 0);
  EXPECT_EQ(llm_cache_flush(engine_), LLM_OK);
  EXPECT_EQ(cached_tokens(), 0);
  EXPECT_EQ(llm_cache_flush(nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_engine_shutdown(engine_, 0), LLM_OK);
  EXPECT_EQ(llm_cache_flush(engine_), LLM_FAILED_PRECONDITION);
}

TEST_F(AbiTest, NullArgumentsAreNamed) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  llm_request_id id = 0;
  size_t count = 0;
  llm_event event;
  EXPECT_EQ(llm_submit(nullptr, &request, &id), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_submit(engine_, nullptr, &id), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_submit(engine_, &request, nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("id"));
  EXPECT_EQ(llm_cancel(nullptr, 1), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_poll(nullptr, &event, sizeof(event), 1, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_poll(llm_engine_queue(engine_), nullptr, sizeof(event), 1, 0, &count),
            LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_poll(llm_engine_queue(engine_), &event, 8, 1, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_engine_open(nullptr, nullptr, &engine_), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_model_open(nullptr, 3, nullptr, &model_), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_metrics(engine_, nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_queue_create(nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_queue_fd(nullptr, nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_tokenize(model_, nullptr, 3, 0, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_engine_queue(nullptr), nullptr);
  EXPECT_EQ(llm_engine_close(nullptr), LLM_OK);
  EXPECT_EQ(llm_queue_close(nullptr), LLM_OK);
  llm_model_release(nullptr);
}

TEST_F(AbiTest, WrongFieldsAreNamed) {
  Open(LLM_DRIVE_MANUAL);
  const auto refused = [&](auto change, llm_status status, const char* names) {
    llm_request request = Request(ids_);
    change(request);
    llm_request_id id = 42;
    EXPECT_EQ(llm_submit(engine_, &request, &id), status) << names;
    EXPECT_THAT(llm_last_error(), HasSubstr(names));
    EXPECT_EQ(id, 42u);
  };
  refused([](llm_request& r) { r.text = Str("two"); }, LLM_INVALID_ARGUMENT, "more than one");
  refused([](llm_request& r) { r.prompt_ids = nullptr; }, LLM_INVALID_ARGUMENT, "prompt_ids");
  refused([](llm_request& r) { r.temperature = std::nanf(""); }, LLM_INVALID_ARGUMENT,
          "temperature");
  refused([](llm_request& r) { r.top_p = 2; }, LLM_INVALID_ARGUMENT, "top_p");
  refused([](llm_request& r) { r.ignore_eos = 3; }, LLM_INVALID_ARGUMENT, "ignore_eos");
  refused([](llm_request& r) { r.choices = 129; }, LLM_INVALID_ARGUMENT, "choices: 129");
  refused([](llm_request& r) { r.choices = UINT32_MAX; }, LLM_INVALID_ARGUMENT, "choices");
  refused([](llm_request& r) { r.adapter_id = 1; }, LLM_UNIMPLEMENTED, "adapter_id");
  refused([](llm_request& r) { r.kv_transfer = Str("x"); }, LLM_UNIMPLEMENTED, "kv_transfer");
  refused([](llm_request& r) { r.reserved2 = 1; }, LLM_UNIMPLEMENTED, "reserved2");
  const llm_logit_bias bias = {1, 1.0f};
  refused([&](llm_request& r) { r.logit_bias = &bias, r.num_logit_bias = 1; }, LLM_INVALID_ARGUMENT,
          "logit_bias_size");
  refused([](llm_request& r) { r.presence_penalty = 5.0f; }, LLM_INVALID_ARGUMENT,
          "presence_penalty");
  refused([](llm_request& r) { r.num_stop_strings = 1; }, LLM_INVALID_ARGUMENT, "stop_strings");
  refused([](llm_request& r) { r.max_new_tokens = 100000; }, LLM_INVALID_ARGUMENT, "100000");
  const int32_t outside[] = {1 << 20};
  refused([&](llm_request& r) { r.prompt_ids = outside, r.num_prompt_ids = 1; },
          LLM_INVALID_ARGUMENT, "vocabulary");
}

TEST_F(AbiTest, WrongEngineOptionsAreNamed) {
  const auto refused = [&](auto change, llm_status status, const char* names) {
    llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
    change(options);
    EXPECT_EQ(llm_engine_open(model_, &options, &engine_), status) << names;
    EXPECT_THAT(llm_last_error(), HasSubstr(names));
    EXPECT_EQ(engine_, nullptr);
  };
  refused([](llm_engine_options& o) { o.kv_dtype = 9; }, LLM_INVALID_ARGUMENT, "kv_dtype");
  refused([](llm_engine_options& o) { o.drive = 2; }, LLM_INVALID_ARGUMENT, "drive");
  refused([](llm_engine_options& o) { o.policy = 3; }, LLM_INVALID_ARGUMENT, "policy");
  refused([](llm_engine_options& o) { o.admission = 3; }, LLM_INVALID_ARGUMENT, "admission");
  refused([](llm_engine_options& o) { o.token_gap_target_ns = -1; }, LLM_INVALID_ARGUMENT,
          "token_gap_target_ns");
  refused([](llm_engine_options& o) { o.reserved = 1; }, LLM_UNIMPLEMENTED, "reserved");
  refused([](llm_engine_options& o) { o.block_size = 24; }, LLM_INVALID_ARGUMENT, "block_size");
  refused([](llm_engine_options& o) { o.num_ranks = 2; }, LLM_UNIMPLEMENTED, "num_ranks");
  refused([](llm_engine_options& o) { o.max_memory_bytes = 1000; }, LLM_RESOURCE_EXHAUSTED,
          "max_memory_bytes");
}

TEST_F(AbiTest, ABadPathIsNamed) {
  llm_model* model = nullptr;
  EXPECT_EQ(llm_model_open("/no/such/file", 13, nullptr, &model), LLM_NOT_FOUND);
  EXPECT_THAT(llm_last_error(), HasSubstr("/no/such/file"));
  EXPECT_EQ(model, nullptr);
}

TEST_F(AbiTest, TheLastErrorIsTheThreadsOwn) {
  llm_model* model = nullptr;
  EXPECT_NE(llm_model_open("/no/such/file", 13, nullptr, &model), LLM_OK);
  std::thread other([] { EXPECT_STREQ(llm_last_error(), ""); });
  other.join();
  llm_queue* queue = nullptr;
  EXPECT_EQ(llm_queue_create(&queue), LLM_OK);
  EXPECT_THAT(llm_last_error(), HasSubstr("/no/such/file")) << "a success keeps it";
  EXPECT_EQ(llm_queue_close(queue), LLM_OK);
}

TEST_F(AbiTest, TheEnginesOwnQueueCannotBeClosedOrWaitedOnWhenManual) {
  Open(LLM_DRIVE_MANUAL);
  EXPECT_EQ(llm_queue_close(llm_engine_queue(engine_)), LLM_FAILED_PRECONDITION);
  llm_event event;
  size_t count = 0;
  EXPECT_EQ(llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, 1, &count),
            LLM_FAILED_PRECONDITION);
}

TEST_F(AbiTest, AQueueMayBeClosedWhileRequestsNameIt) {
  Open(LLM_DRIVE_MANUAL);
  llm_queue* queue = nullptr;
  ASSERT_EQ(llm_queue_create(&queue), LLM_OK);
  llm_request request = Request(ids_);
  request.queue = queue;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
  EXPECT_EQ(llm_queue_close(queue), LLM_OK);
  RunAll();
}

TEST_F(AbiTest, TheModelMayBeReleasedBeforeTheEngine) {
  Open(LLM_DRIVE_MANUAL);
  llm_model_release(model_);
  model_ = nullptr;
  const llm_request request = Request(ids_);
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
  RunAll();
  EXPECT_EQ(Poll().back().type, static_cast<uint32_t>(LLM_EVENT_FINISHED));
}

TEST_F(AbiTest, TokenizesAndDetokenizesWithSizing) {
  const char* text = "hello world";
  size_t count = 0;
  ASSERT_EQ(llm_tokenize(model_, text, std::strlen(text), 0, nullptr, 0, &count), LLM_OK)
      << llm_last_error();
  std::vector<int32_t> ids(count);
  ASSERT_EQ(llm_tokenize(model_, text, std::strlen(text), 0, ids.data(), ids.size(), &count),
            LLM_OK);
  size_t size = 0;
  ASSERT_EQ(llm_detokenize(model_, ids.data(), ids.size(), 0, nullptr, 0, &size), LLM_OK);
  std::string back(size, '\0');
  ASSERT_EQ(llm_detokenize(model_, ids.data(), ids.size(), 0, back.data(), back.size(), &size),
            LLM_OK);
  EXPECT_EQ(back, text);
  const int32_t outside = 1 << 24;
  EXPECT_EQ(llm_detokenize(model_, &outside, 1, 0, nullptr, 0, &size), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_tokenize(model_, text, 5, 64, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
}

TEST_F(AbiTest, StatusesHaveNames) {
  EXPECT_STREQ(llm_status_name(LLM_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  EXPECT_STREQ(llm_status_name(LLM_UNAUTHENTICATED), "UNAUTHENTICATED");
  EXPECT_NE(llm_status_name(-5), nullptr);
  EXPECT_EQ(llm_abi_version(), static_cast<uint32_t>(LLM_ABI_MAJOR) << 16 | LLM_ABI_MINOR);
}

}  // namespace
}  // namespace llm
