// Wrong and extreme use of the C ABI on one thread: refused by name, or served; never a crash.
#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class AbiMisuseTest : public AbiTest {
 protected:
  // Steps to the end and returns the FINISHED events of the engine's queue.
  std::vector<llm_event> Finish() {
    std::vector<llm_event> finished;
    uint32_t worked = 1;
    while (worked != 0) {
      EXPECT_EQ(llm_engine_step(engine_, &worked), LLM_OK) << llm_last_error();
      for (const llm_event& event : Poll()) {
        if (event.type == LLM_EVENT_FINISHED) finished.push_back(event);
      }
    }
    return finished;
  }
  llm_status Submit(const llm_request& request) {
    llm_request_id id = 0;
    return llm_submit(engine_, &request, &id);
  }
  llm_status Render(const std::string& chat, std::string* text = nullptr) {
    size_t size = 0;
    std::string out(1 << 16, '\0');
    const llm_status status =
        llm_chat_render(model_, chat.data(), chat.size(), out.data(), out.size(), &size);
    if (status == LLM_OK && text != nullptr) *text = out.substr(0, size);
    return status;
  }
};

TEST_F(AbiMisuseTest, ExtremeEngineOptionsAreRefusedOrServed) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const auto tried = [&](auto change) {
    llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
    change(options);
    llm_engine* engine = nullptr;
    const llm_status status = llm_engine_open(model_, &options, &engine);
    EXPECT_THAT(status, AnyOf(LLM_OK, LLM_INVALID_ARGUMENT, LLM_RESOURCE_EXHAUSTED));
    EXPECT_EQ(llm_engine_close(engine), LLM_OK);
    return status;
  };
  EXPECT_EQ(tried([](auto& o) { o.num_threads = kMost; }), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(tried([](auto& o) { o.block_size = kMost; }), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(tried([](auto& o) { o.kv_tokens = ~uint64_t{0}; }), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(tried([](auto& o) { o.max_context_tokens = kMost; }), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(tried([](auto& o) { o.max_sequences = kMost; }), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(tried([](auto& o) { o.max_step_tokens = kMost; }), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(tried([](auto& o) { o.max_memory_bytes = 1; }), LLM_RESOURCE_EXHAUSTED);
  EXPECT_EQ(tried([](auto& o) { o.max_queued_requests = kMost; }), LLM_OK);
  EXPECT_EQ(tried([](auto& o) { o.max_queued_tokens = ~uint64_t{0}; }), LLM_OK);
  EXPECT_EQ(tried([](auto& o) { o.max_pending_bytes = ~uint64_t{0}; }), LLM_OK);
  EXPECT_EQ(tried([](auto& o) { o.spin_us = kMost, o.num_threads = 2; }), LLM_OK);
  EXPECT_EQ(tried([](auto& o) { o.kv_tokens = 1, o.max_sequences = 1, o.max_step_tokens = 1; }),
            LLM_OK);
  EXPECT_EQ(tried([](auto& o) { o.block_size = 4096; }), LLM_OK);
}

TEST_F(AbiMisuseTest, LongestPromptsAndOutputsFitExactlyOrAreRefused) {
  Open(LLM_DRIVE_MANUAL);
  llm_model_info info;
  llm_model_info_init(&info);
  ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
  const size_t context = static_cast<size_t>(info.context_length);
  std::vector<int32_t> ids(context + 1, 5);
  llm_request request = Request(ids);
  request.max_new_tokens = 0;
  EXPECT_EQ(Submit(request), LLM_INVALID_ARGUMENT);
  request.num_prompt_ids = context;
  EXPECT_EQ(Submit(request), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("no room"));
  request.num_prompt_ids = 1;
  request.max_new_tokens = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(Submit(request), LLM_INVALID_ARGUMENT);
  request.num_prompt_ids = context - 1;
  request.max_new_tokens = 0;  // exactly one is left
  ASSERT_EQ(Submit(request), LLM_OK) << llm_last_error();
  uint32_t worked = 1;
  std::vector<llm_event> last;
  while (worked != 0) {
    ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
    std::vector<llm_event> events = Poll();
    if (events.empty()) continue;
    EXPECT_EQ(events.back().finish_reason, LLM_FINISH_LENGTH);
    ASSERT_NE(events.back().stats, nullptr);
    EXPECT_EQ(events.back().stats->generated_tokens, 1);
  }
}

TEST_F(AbiMisuseTest, TextsOfAnyBytesAreServed) {
  Open(LLM_DRIVE_MANUAL);
  const std::string texts[] = {std::string(8, '\0'),   "\xff\xfe\xc3",     "\xed\xa0\x80\xf8\x88",
                               std::string("a\0b", 3), "\xf4\x90\x80\x80", "<|eos|>\0<|bos|>"};
  for (const std::string& text : texts) {
    for (const uint32_t parse_special : {LLM_ON, LLM_OFF}) {
      llm_request request = Request({});
      request.prompt_ids = nullptr;
      request.text = {text.data(), text.size()};
      request.parse_special = parse_special;
      ASSERT_EQ(Submit(request), LLM_OK) << llm_last_error();
      const std::vector<llm_event> finished = Finish();
      ASSERT_EQ(finished.size(), 1u);
      EXPECT_EQ(finished[0].status, LLM_OK);
    }
  }
}

TEST_F(AbiMisuseTest, BadChatsAreRefused) {
  for (const std::string& chat :
       {std::string("["), std::string("[]]"), std::string("{\"messages\":[]"),
        std::string("{\"messages\":{}}"), std::string("{\"messages\":[],\"messages\":1}"),
        std::string("{\"a\":{\"messages\":[]}}"), std::string("[\"\xff\"]"), std::string("3"),
        std::string("\"messages\""), std::string("[1e999]"), std::string(1000000, '['),
        std::string(100, '[') + std::string(100, ']'), std::string(3, '\0'), std::string("[]\0", 3),
        std::string("{\"messages\":[]}\0}", 17), std::string("")}) {
    EXPECT_EQ(Render(chat), LLM_INVALID_ARGUMENT) << chat.substr(0, 40);
    EXPECT_THAT(llm_last_error(), HasSubstr("chat"));
  }
}

TEST_F(AbiMisuseTest, AChatThatIsNotUtf8SaysWhere) {
  for (const auto& [chat, message] :
       {std::pair("[\"\xff\"]", "chat: not UTF-8 at byte 2"),
        std::pair("[\"caf\xc3\xa9 \xc3\"]", "chat: not UTF-8 at byte 8"),
        std::pair("[", "chat: not valid JSON")}) {
    EXPECT_EQ(Render(chat), LLM_INVALID_ARGUMENT);
    EXPECT_THAT(llm_last_error(), HasSubstr(message));
  }
}

TEST_F(AbiMisuseTest, WhatHasSizeZeroIsNotGiven) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request({});
  request.prompt_ids = ids_.data();
  request.num_prompt_ids = 0;
  request.text = Str("hi");
  request.chat = {"[]", 0};
  EXPECT_EQ(Submit(request), LLM_OK) << llm_last_error();
  EXPECT_EQ(Finish().size(), 1u);
  request.chat = Str("[]");
  EXPECT_EQ(Submit(request), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("more than one"));
  request.text = request.chat = {"hi", 0};
  EXPECT_EQ(Submit(request), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("text: empty"));
  llm_embed_request embed;
  llm_embed_request_init(&embed);
  embed.text = {"hi", 0};
  embed.ids = ids_.data();
  embed.num_ids = ids_.size();
  size_t count = 0;
  EXPECT_EQ(llm_embed(engine_, &embed, nullptr, 0, &count), LLM_OK) << llm_last_error();
}

TEST_F(AbiMisuseTest, AChatMayBeAnArrayOrAnObjectWithFurtherMembers) {
  const std::string messages = R"([{"role":"user","content":"hi"}])";
  std::string from_array;
  ASSERT_EQ(Render(messages, &from_array), LLM_OK) << llm_last_error();
  EXPECT_THAT(from_array, HasSubstr("hi"));
  for (const std::string& chat :
       {"{\"messages\":" + messages + "} \n",
        "{\"x\":{\"messages\":1},\"messages\":" + messages + "}",
        "{\"messages\":3,\"messages\":" + messages + ",\"add_generation_prompt\":true}",
        " " + messages + " "}) {
    std::string text;
    ASSERT_EQ(Render(chat, &text), LLM_OK) << llm_last_error();
    EXPECT_EQ(text, from_array) << chat;
  }
  std::string without;
  ASSERT_EQ(Render("{\"add_generation_prompt\":false,\"messages\":" + messages + "}", &without),
            LLM_OK);
  EXPECT_NE(without, from_array);
}

// Comparing each key with all before it would take minutes here.
TEST_F(AbiMisuseTest, AChatOfVeryManyKeysIsRendered) {
  std::string chat = "{\"messages\":[]";
  for (int i = 0; i < 500000; ++i) chat += ",\"key" + std::to_string(i) + "\":0";
  EXPECT_EQ(Render(chat + "}"), LLM_OK) << llm_last_error();
}

TEST_F(AbiMisuseTest, OverlappingStopStringsEndOnce) {
  Open(LLM_DRIVE_MANUAL);
  std::string text;
  const auto run = [&](const std::vector<llm_string>& stops, int32_t* reason) {
    llm_request request = Request(ids_);
    request.max_new_tokens = 40;
    request.stop_strings = stops.data();
    request.num_stop_strings = stops.size();
    ASSERT_EQ(Submit(request), LLM_OK) << llm_last_error();
    text.clear();
    uint32_t worked = 1;
    int num_finished = 0;
    while (worked != 0) {
      ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
      for (const llm_event& event : Poll()) {
        text.append(event.text.data, event.text.size);
        if (event.type != LLM_EVENT_FINISHED) continue;
        ++num_finished;
        *reason = event.finish_reason;
      }
    }
    EXPECT_EQ(num_finished, 1);
  };
  int32_t reason = 0;
  run({}, &reason);
  const std::string whole = text;
  ASSERT_GT(whole.size(), 8u);
  for (size_t begin = 0; begin + 6 < whole.size(); begin += 3) {
    const std::string a = whole.substr(begin, 4);
    const std::string b = whole.substr(begin + 1, 5);
    const std::string c = whole.substr(begin + 2, 1);
    run({{a.data(), 4}, {b.data(), 5}, {a.data(), 3}, {c.data(), 1}, {c.data(), 1}}, &reason);
    EXPECT_EQ(reason, LLM_FINISH_STOP_STRING);
    EXPECT_EQ(whole.compare(0, text.size(), text), 0);
  }
}

// What a callback of a manual engine gets away with.
struct Reentrant {
  llm_engine* engine = nullptr;
  std::vector<int32_t> ids = {1, 2, 3};
  int events = 0;
  int finished = 0;
  int submits_left = 3;
};

void Reenter(void* user_data, const llm_event* event) {
  auto* state = static_cast<Reentrant*>(user_data);
  ++state->events;
  if (event->type == LLM_EVENT_FINISHED) ++state->finished;
  uint32_t worked = 0;
  EXPECT_EQ(llm_engine_step(state->engine, &worked), LLM_FAILED_PRECONDITION);
  EXPECT_EQ(llm_engine_close(state->engine), LLM_FAILED_PRECONDITION);
  llm_cancel(state->engine, event->id);
  if (state->submits_left-- <= 0) return;
  llm_request request;
  llm_request_init(&request);
  request.prompt_ids = state->ids.data();
  request.num_prompt_ids = state->ids.size();
  request.on_event = &Reenter;
  request.user_data = state;
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(state->engine, &request, &id), LLM_OK) << llm_last_error();
}

TEST_F(AbiMisuseTest, ACallbackMaySubmitAndCancelButNotStepOrClose) {
  Open(LLM_DRIVE_MANUAL);
  Reentrant state;
  state.engine = engine_;
  llm_request request = Request(ids_);
  request.on_event = &Reenter;
  request.user_data = &state;
  ASSERT_EQ(Submit(request), LLM_OK);
  RunAll();
  EXPECT_EQ(state.finished, 4);
}

TEST_F(AbiMisuseTest, ACallbackThatThrowsEndsItsRequestAlone) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.on_event = [](void*, const llm_event*) { throw std::runtime_error("mine"); };
  ASSERT_EQ(Submit(request), LLM_OK);
  ASSERT_EQ(Submit(Request(ids_)), LLM_OK);
  const std::vector<llm_event> finished = Finish();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].finish_reason, LLM_FINISH_LENGTH);
}

TEST_F(AbiMisuseTest, ACallbackThatShutsDownStopsIntakeAndStillGetsItsFinished) {
  Open(LLM_DRIVE_MANUAL);
  Reentrant state;
  state.engine = engine_;
  llm_request request = Request(ids_);
  request.user_data = &state;
  request.on_event = [](void* user_data, const llm_event* event) {
    auto* self = static_cast<Reentrant*>(user_data);
    self->finished += event->type == LLM_EVENT_FINISHED ? 1 : 0;
    EXPECT_EQ(llm_engine_shutdown(self->engine, -1), LLM_DEADLINE_EXCEEDED);
  };
  ASSERT_EQ(Submit(request), LLM_OK);
  uint32_t worked = 0;
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  EXPECT_EQ(Submit(Request(ids_)), LLM_FAILED_PRECONDITION);
  EXPECT_EQ(llm_engine_step(engine_, &worked), LLM_FAILED_PRECONDITION);
  EXPECT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  EXPECT_EQ(state.finished, 1);
  EXPECT_EQ(llm_engine_shutdown(engine_, 0), LLM_OK);
}

TEST_F(AbiMisuseTest, TwoHundredRequestsPassThroughATinyPool) {
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.kv_tokens = 64;
  options.max_step_tokens = 16;
  options.max_sequences = 8;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  for (int i = 0; i < 200; ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(1 + i % 50), 3 + i % 7);
    llm_request request = Request(ids);
    request.max_new_tokens = static_cast<uint32_t>(1 + i % 14);
    ASSERT_EQ(Submit(request), LLM_OK) << llm_last_error();
  }
  const std::vector<llm_event> finished = Finish();
  EXPECT_EQ(finished.size(), 200u);
  for (const llm_event& event : finished) EXPECT_EQ(event.finish_reason, LLM_FINISH_LENGTH);
}

TEST_F(AbiMisuseTest, EnginesShareAModelAndAQueueInAnyOrderOfRelease) {
  llm_queue* queue = nullptr;
  ASSERT_EQ(llm_queue_create(&queue), LLM_OK);
  llm_engine* engines[2] = {};
  for (llm_engine*& engine : engines) {
    const llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
    ASSERT_EQ(llm_engine_open(model_, &options, &engine), LLM_OK);
    llm_request request = Request(ids_);
    request.queue = queue;
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine, &request, &id), LLM_OK);
    EXPECT_EQ(llm_cancel(engine, id + 1), LLM_NOT_FOUND);
    EXPECT_EQ(llm_cancel(engine, 0), LLM_NOT_FOUND);
  }
  llm_model_release(model_);
  model_ = nullptr;
  uint32_t worked = 1;
  while (worked != 0) ASSERT_EQ(llm_engine_step(engines[1], &worked), LLM_OK);
  for (llm_engine* engine : engines) EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  llm_event events[32];
  size_t count = 0;
  ASSERT_EQ(llm_poll(queue, events, sizeof(events[0]), 32, 0, &count), LLM_OK);
  int cancelled = 0;
  int complete = 0;
  for (size_t i = 0; i < count; ++i) {
    cancelled += events[i].finish_reason == LLM_FINISH_CANCELLED ? 1 : 0;
    complete += events[i].finish_reason == LLM_FINISH_LENGTH ? 1 : 0;
  }
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(complete, 1);
  EXPECT_EQ(llm_queue_close(queue), LLM_OK);
}

TEST_F(AbiMisuseTest, DeadlinesAtTheEndOfTimeAreNone) {
  Open(LLM_DRIVE_MANUAL);
  for (const int64_t deadline : {INT64_MAX, INT64_MAX / 2, INT64_MAX - 1}) {
    llm_request request = Request(ids_);
    request.completion_deadline_ns = deadline;
    request.first_token_deadline_ns = deadline;
    ASSERT_EQ(Submit(request), LLM_OK);
  }
  EXPECT_EQ(Finish().size(), 3u);
}

}  // namespace
}  // namespace llm
