// One test for each promise that the design makes of the ABI, in its order; the other abi tests go
// further.
#include <gmock/gmock.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiDesignTest : public AbiTest {
 protected:
  llm_request_id Submit(const llm_request& request) {
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    return id;
  }
  // Polls a threaded engine's queue for one FINISHED.
  llm_event WaitForFinished() {
    llm_event event;
    size_t count = 0;
    do {
      EXPECT_EQ(llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, -1, &count), LLM_OK);
    } while (event.type != LLM_EVENT_FINISHED);
    return event;
  }
};

TEST_F(AbiDesignTest, HandlesAreReleasedInAnyOrderAndNullIsNone) {
  Open(LLM_DRIVE_MANUAL);
  llm_model_release(model_);  // the engine keeps what it needs
  model_ = nullptr;
  llm_queue* queue = nullptr;
  ASSERT_EQ(llm_queue_create(&queue), LLM_OK);
  llm_request request = Request(ids_);
  request.queue = queue;
  const llm_request_id id = Submit(request);
  EXPECT_EQ(llm_queue_close(queue), LLM_OK);
  RunAll();
  EXPECT_EQ(llm_cancel(engine_, id), LLM_NOT_FOUND);  // late, harmless
  llm_model_release(nullptr);
  EXPECT_EQ(llm_queue_close(nullptr), LLM_OK);
  EXPECT_EQ(llm_engine_close(nullptr), LLM_OK);
}

TEST_F(AbiDesignTest, PollLendsWhatStaysUntilTheNextPollOfThatQueue) {
  Open(LLM_DRIVE_MANUAL);
  EXPECT_TRUE(Poll().empty());  // nothing yet: LLM_OK with count 0
  Submit(Request(ids_));
  uint32_t worked = 0;
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  const std::vector<llm_event> events = Poll();
  ASSERT_EQ(events.size(), 1u);
  const int32_t* lent = events[0].token_ids;
  const std::vector<int32_t> before(lent, lent + events[0].num_tokens);
  RunAll();  // the producer goes on, and does not touch what was lent
  EXPECT_EQ(std::vector<int32_t>(lent, lent + before.size()), before);
  EXPECT_EQ(Poll().back().type, LLM_EVENT_FINISHED);
}

TEST_F(AbiDesignTest, ASecondConcurrentPollOfOneQueueIsRefused) {
  Open(LLM_DRIVE_THREADS);
  llm_queue* queue = nullptr;
  ASSERT_EQ(llm_queue_create(&queue), LLM_OK);
  std::thread first([queue] {
    llm_event event;
    size_t count = 0;
    EXPECT_EQ(llm_poll(queue, &event, sizeof(event), 1, -1, &count), LLM_OK);
  });
  // The first poll has begun once one without a wait is refused.
  llm_event event;
  size_t count = 0;
  while (llm_poll(queue, &event, sizeof(event), 1, 0, &count) == LLM_OK) std::this_thread::yield();
  EXPECT_THAT(llm_last_error(), HasSubstr("another thread polls"));
  EXPECT_EQ(llm_queue_close(queue), LLM_FAILED_PRECONDITION);
  llm_request request = Request(ids_);
  request.queue = queue;
  Submit(request);
  first.join();
  EXPECT_EQ(llm_queue_close(queue), LLM_OK);
}

TEST_F(AbiDesignTest, TheQueuesDescriptorIsReadableWhileEventsWait) {
  Open(LLM_DRIVE_MANUAL);
  int32_t fd = -1;
  ASSERT_EQ(llm_queue_fd(llm_engine_queue(engine_), &fd), LLM_OK);
  pollfd waiting = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  Submit(Request(ids_));
  RunAll();
  EXPECT_EQ(poll(&waiting, 1, 0), 1);
  EXPECT_EQ(poll(&waiting, 1, 0), 1);  // level-triggered
  Poll();
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
}

TEST_F(AbiDesignTest, TheIdIsStoredBeforeAnyEventCanBeSeen) {
  Open(LLM_DRIVE_THREADS);
  struct Seen {
    llm_request_id id = 0;  // written by llm_submit
    std::atomic<int> finished{0};
  } seen;
  llm_request request = Request(ids_);
  request.user_data = &seen;
  request.on_event = [](void* user_data, const llm_event* event) {
    Seen* self = static_cast<Seen*>(user_data);
    EXPECT_EQ(self->id, event->id);
    if (event->type == LLM_EVENT_FINISHED) self->finished.fetch_add(1);
  };
  ASSERT_EQ(llm_submit(engine_, &request, &seen.id), LLM_OK);
  ASSERT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  EXPECT_EQ(seen.finished.load(), 1);
}

TEST_F(AbiDesignTest, ARefusedSubmitGivesNoIdAndNoEvent) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.num_prompt_ids = 0;
  llm_request_id id = 77;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(id, 77u);
  RunAll();
  EXPECT_TRUE(Poll().empty());
}

TEST_F(AbiDesignTest, AProgramOfAbi10SeesNoLateRequestRefused) {
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.struct_size = offsetof(llm_engine_options, refuse_late);
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  llm_request late = Request(ids_);
  late.completion_deadline_ns = 1;
  Submit(late);
  RunAll();
  ASSERT_EQ(Poll().size(), 1u);
}

TEST_F(AbiDesignTest, FinishedCarriesReasonStatusMessageAndStats) {
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.refuse_late = LLM_OFF;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  Submit(Request(ids_));
  const llm_request_id cancelled = Submit(Request(ids_));
  ASSERT_EQ(llm_cancel(engine_, cancelled), LLM_OK);
  llm_request late = Request(ids_);
  late.completion_deadline_ns = 1;
  Submit(late);
  RunAll();
  int finished = 0;
  for (const llm_event& event : Poll()) {
    if (event.type != LLM_EVENT_FINISHED) continue;
    ++finished;
    ASSERT_NE(event.stats, nullptr);
    EXPECT_EQ(event.stats->prompt_tokens, 5);
    switch (event.finish_reason) {
      case LLM_FINISH_LENGTH:
        EXPECT_EQ(event.status, LLM_OK);
        EXPECT_EQ(event.message.size, 0u);
        break;
      case LLM_FINISH_CANCELLED:
        EXPECT_EQ(event.status, LLM_CANCELLED);
        EXPECT_GT(event.message.size, 0u);
        break;
      default:
        EXPECT_EQ(event.finish_reason, LLM_FINISH_DEADLINE);
        EXPECT_EQ(event.status, LLM_DEADLINE_EXCEEDED);
        EXPECT_THAT(std::string(event.message.data, event.message.size), HasSubstr("deadline"));
    }
  }
  EXPECT_EQ(finished, 3);
}

TEST_F(AbiDesignTest, ADrawnSeedIsToldAndRepeatsTheAnswer) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.temperature = 5;
  request.max_new_tokens = 16;
  const auto answer = [&](uint64_t* seed) {
    Submit(request);
    RunAll();
    std::vector<int32_t> ids;
    for (const llm_event& event : Poll()) {
      ids.insert(ids.end(), event.token_ids, event.token_ids + event.num_tokens);
      if (event.type == LLM_EVENT_FINISHED) *seed = event.stats->seed;
    }
    return ids;
  };
  uint64_t drawn = 0;
  const std::vector<int32_t> first = answer(&drawn);
  request.seed = drawn;
  request.set = LLM_SET_SEED;
  uint64_t used = 0;
  EXPECT_EQ(answer(&used), first);
  EXPECT_EQ(used, drawn);
}

TEST_F(AbiDesignTest, ShutdownQueuesEveryFinishedAndRefusesLaterSubmits) {
  Open(LLM_DRIVE_THREADS);
  llm_request request = Request(ids_);
  request.max_new_tokens = 400;
  Submit(request);
  ASSERT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  EXPECT_EQ(WaitForFinished().status, LLM_CANCELLED);
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_FAILED_PRECONDITION);
}

TEST_F(AbiDesignTest, CloseIsRefusedInsideACallback) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.user_data = engine_;
  request.on_event = [](void* user_data, const llm_event*) {
    EXPECT_EQ(llm_engine_close(static_cast<llm_engine*>(user_data)), LLM_FAILED_PRECONDITION);
  };
  Submit(request);
  RunAll();
}

TEST_F(AbiDesignTest, ACallbackThatBlocksDelaysNeitherStepsNorQueues) {
  Open(LLM_DRIVE_THREADS);
  std::atomic<bool> release{false};
  llm_request blocking = Request(ids_);
  blocking.user_data = &release;
  blocking.on_event = [](void* user_data, const llm_event*) {
    while (!static_cast<std::atomic<bool>*>(user_data)->load()) std::this_thread::yield();
  };
  Submit(blocking);
  Submit(Request(ids_));
  EXPECT_EQ(WaitForFinished().status, LLM_OK);  // while the callback still blocks
  release.store(true);
  ASSERT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_GT(metrics.callback_ns_total, 0u);
}

TEST_F(AbiDesignTest, AnExceptionOutOfACallbackEndsItsRequestAlone) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.on_event = [](void*, const llm_event* event) {
    if (event->type == LLM_EVENT_TOKENS) throw 1;
  };
  Submit(request);
  Submit(Request(ids_));
  RunAll();
  EXPECT_EQ(Poll().back().status, LLM_OK);
}

TEST_F(AbiDesignTest, ASlowReadersDeltasCoalesceAndNoneIsLost) {
  Open(LLM_DRIVE_MANUAL);
  Submit(Request(ids_));
  RunAll();
  const std::vector<llm_event> events = Poll();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].num_tokens, 4u);
}

TEST_F(AbiDesignTest, CancelTakesEffectWithinOneStepOfALongPrefill) {
  Open(LLM_DRIVE_MANUAL);
  const std::vector<int32_t> prompt(300, 7);  // five steps of 64 tokens
  const llm_request_id id = Submit(Request(prompt));
  uint32_t worked = 0;
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  ASSERT_EQ(llm_cancel(engine_, id), LLM_OK);
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  const std::vector<llm_event> events = Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].finish_reason, LLM_FINISH_CANCELLED);
}

TEST_F(AbiDesignTest, ManualDriveRefusesAStepWithinAStepAndABlockingPoll) {
  Open(LLM_DRIVE_MANUAL);
  llm_request request = Request(ids_);
  request.user_data = engine_;
  request.on_event = [](void* user_data, const llm_event*) {
    uint32_t worked = 0;
    EXPECT_EQ(llm_engine_step(static_cast<llm_engine*>(user_data), &worked),
              LLM_FAILED_PRECONDITION);
  };
  Submit(request);
  RunAll();
  llm_event event;
  size_t count = 0;
  EXPECT_EQ(llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, 1, &count),
            LLM_FAILED_PRECONDITION);
}

TEST_F(AbiDesignTest, StatusesAreNumberedAsAbseilsAndTheLastErrorIsTheThreads) {
  EXPECT_STREQ(llm_status_name(LLM_UNAUTHENTICATED), "UNAUTHENTICATED");
  EXPECT_EQ(llm_submit(nullptr, nullptr, nullptr), LLM_INVALID_ARGUMENT);
  const std::string mine = llm_last_error();
  EXPECT_NE(mine, "");
  EXPECT_LT(mine.size(), 1024u);
  std::thread([] { EXPECT_STREQ(llm_last_error(), ""); }).join();
  EXPECT_EQ(llm_engine_close(nullptr), LLM_OK);  // a call that does not fail leaves it
  EXPECT_EQ(llm_last_error(), mine);
}

TEST_F(AbiDesignTest, InputsAreCopiedBeforeSubmitReturns) {
  Open(LLM_DRIVE_MANUAL);
  std::vector<int32_t> prompt = ids_;
  std::string stop = "never";
  const llm_string stops[] = {{stop.data(), stop.size()}};
  llm_request request = Request(prompt);
  request.stop_strings = stops;
  request.num_stop_strings = 1;
  Submit(request);
  std::fill(prompt.begin(), prompt.end(), -1);
  stop.assign("\xff\xff\xff\xff\xff");
  RunAll();
  EXPECT_EQ(Poll().back().status, LLM_OK);
}

TEST_F(AbiDesignTest, ReservedFieldsAreRefusedByName) {
  Open(LLM_DRIVE_MANUAL);
  const auto refused = [&](const llm_request& request, const char* field) {
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_UNIMPLEMENTED) << field;
    EXPECT_THAT(llm_last_error(), HasSubstr(field));
  };
  llm_request request = Request(ids_);
  request.adapter_id = 1;
  refused(request, "adapter_id");
  request = Request(ids_);
  request.arrival_ns = 1;
  refused(request, "arrival_ns");
  request = Request(ids_);
  request.kv_transfer = Str("{}");
  refused(request, "kv_transfer");
}

}  // namespace
}  // namespace llm
