// Many threads on one engine, its queues and its callbacks. Run under a thread sanitizer, too.
#include <atomic>
#include <thread>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

class AbiThreadsTest : public AbiTest {
 protected:
  // Runs `body(i)` on several threads at once.
  template <typename Body>
  static void OnThreads(int num_threads, Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  }
  // Polls until `wanted` requests are finished; a poll that another thread bars is tried again.
  static void PollUntil(llm_queue* queue, int wanted, std::atomic<int>* finished) {
    while (finished->load() < wanted) {
      llm_event events[8];
      size_t count = 0;
      const llm_status status = llm_poll(queue, events, sizeof(events[0]), 8, 1000000, &count);
      if (status == LLM_FAILED_PRECONDITION) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(status, LLM_OK) << llm_last_error();
      for (size_t i = 0; i < count; ++i) {
        if (events[i].type == LLM_EVENT_FINISHED) finished->fetch_add(1);
      }
    }
  }
};

// A poll lends its buffer until the next, so that threads which share a queue must take turns; this
// reads only what the caller's own array holds.
TEST_F(AbiThreadsTest, EveryRequestFinishesOnceUnderSubmitPollCallbackAndCancelFromAllSides) {
  Open(LLM_DRIVE_THREADS);
  constexpr int kSubmitters = 8;
  constexpr int kPollers = 2;
  constexpr int kRequests = 10;
  constexpr int kPolled = kSubmitters * kRequests / 2;  // the other half is called back
  std::atomic<int> submitted{0};
  std::atomic<int> polled{0};
  std::atomic<int> called_back{0};
  std::atomic<uint64_t> newest{0};
  OnThreads(kSubmitters + kPollers + 1, [&](int thread) {
    if (thread < kSubmitters) {
      for (int i = 0; i < kRequests; ++i) {
        llm_request_id id = 0;
        llm_request request = Request(ids_);
        request.user_data = &called_back;
        if (i % 2 == 1) {
          request.on_event = [](void* user_data, const llm_event* event) {
            if (event->type != LLM_EVENT_FINISHED) return;
            static_cast<std::atomic<int>*>(user_data)->fetch_add(1);
          };
        }
        ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
        newest.store(id);
        submitted.fetch_add(1);
      }
    } else if (thread < kSubmitters + kPollers) {
      PollUntil(llm_engine_queue(engine_), kPolled, &polled);
    } else {
      while (polled.load() < kPolled) {
        const llm_status status = llm_cancel(engine_, newest.load() + (submitted.load() & 1));
        ASSERT_TRUE(status == LLM_OK || status == LLM_NOT_FOUND);
        std::this_thread::yield();
      }
    }
  });
  ASSERT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  EXPECT_EQ(polled.load(), kPolled);
  EXPECT_EQ(called_back.load(), kSubmitters * kRequests / 2);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_EQ(metrics.finished_requests_total, static_cast<uint64_t>(kSubmitters * kRequests));
  EXPECT_EQ(metrics.healthy, 1u);
}

// Refusals are written by the submitting threads, everything else by the engine's.
TEST_F(AbiThreadsTest, RingsAreReadWhileTheyAreWritten) {
  Open(LLM_DRIVE_THREADS);
  constexpr int kRequests = 20;
  std::atomic<int> finished{0};
  OnThreads(5, [&](int thread) {
    if (thread < 2) {
      for (int i = 0; i < kRequests; ++i) {
        llm_request_id id = 0;
        llm_request request = Request(ids_);
        ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
        request.max_new_tokens = 1u << 20;
        ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_INVALID_ARGUMENT);
      }
    } else if (thread == 2) {
      PollUntil(llm_engine_queue(engine_), 2 * kRequests, &finished);
    } else {
      uint64_t step_cursor = 0, record_cursor = 0;
      int ends = 0, refusals = 0;
      while (ends < 2 * kRequests || refusals < 2 * kRequests) {
        llm_step_record steps[16];
        llm_request_record records[16];
        size_t count = 0;
        ASSERT_EQ(llm_step_records_read(engine_, &step_cursor, steps, sizeof(steps[0]), 16, &count),
                  LLM_OK);
        for (size_t i = 0; i < count; ++i) {
          EXPECT_EQ(steps[i].index, step_cursor - count + i);
          EXPECT_GE(steps[i].end_ns, steps[i].begin_ns);
        }
        ASSERT_EQ(llm_request_records_read(engine_, &record_cursor, records, sizeof(records[0]), 16,
                                           &count),
                  LLM_OK);
        for (size_t i = 0; i < count; ++i) {
          ends += records[i].kind == LLM_RECORD_FINISHED ? 1 : 0;
          refusals += records[i].kind == LLM_RECORD_REJECTED ? 1 : 0;
        }
        if (count == 0) std::this_thread::yield();
      }
    }
  });
}

TEST_F(AbiThreadsTest, AHundredEnginesOpenAndCloseWithWorkInFlight) {
  for (int i = 0; i < 100; ++i) {
    llm_engine* engine = nullptr;
    llm_engine_options options = EngineOptions(LLM_DRIVE_THREADS);
    options.num_threads = 1 + static_cast<uint32_t>(i % 2);
    ASSERT_EQ(llm_engine_open(model_, &options, &engine), LLM_OK) << llm_last_error();
    llm_request_id id = 0;
    llm_request request = Request(ids_);
    request.max_new_tokens = 200;
    for (int k = 0; k < i % 4; ++k) ASSERT_EQ(llm_submit(engine, &request, &id), LLM_OK);
    if (i % 3 == 0) llm_cancel(engine, id);
    ASSERT_EQ(llm_engine_close(engine), LLM_OK);
  }
}

TEST_F(AbiThreadsTest, CloseLetsACallThatWaitsReturnFirst) {
  struct Meeting {
    std::atomic<bool> scoring{false};
    std::atomic<bool> closing{false};
  };
  for (int i = 0; i < 50; ++i) {
    llm_engine* engine = nullptr;
    const llm_engine_options options = EngineOptions(LLM_DRIVE_THREADS);
    ASSERT_EQ(llm_engine_open(model_, &options, &engine), LLM_OK) << llm_last_error();
    Meeting meeting;
    std::thread waits([&] {
      llm_score_request request;
      llm_score_request_init(&request);
      request.ids = ids_.data();
      request.num_ids = ids_.size();
      request.user_data = &meeting;
      request.on_row = [](void* user_data, const llm_score_row*) -> int32_t {
        auto* self = static_cast<Meeting*>(user_data);
        self->scoring.store(true);
        while (!self->closing.load()) std::this_thread::yield();
        return 0;
      };
      size_t count = 0;
      const llm_status status = llm_score(engine, &request, nullptr, 0, &count);
      EXPECT_TRUE(status == LLM_OK || status == LLM_CANCELLED) << llm_last_error();
    });
    while (!meeting.scoring.load()) std::this_thread::yield();
    meeting.closing.store(true);
    ASSERT_EQ(llm_engine_close(engine), LLM_OK);
    waits.join();
  }
}

TEST_F(AbiThreadsTest, ShutdownDuringSubmitsLeavesNoRequestWithoutItsFinished) {
  Open(LLM_DRIVE_THREADS);
  std::atomic<int> accepted{0};
  std::atomic<int> finished{0};
  OnThreads(4, [&](int thread) {
    if (thread == 3) {
      while (accepted.load() < 5) std::this_thread::yield();
      EXPECT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
      return;
    }
    llm_request request = Request(ids_);
    request.user_data = &finished;
    request.on_event = [](void* user_data, const llm_event* event) {
      if (event->type != LLM_EVENT_FINISHED) return;
      static_cast<std::atomic<int>*>(user_data)->fetch_add(1);
    };
    llm_request_id id = 0;
    llm_status status = LLM_OK;
    while ((status = llm_submit(engine_, &request, &id)) != LLM_FAILED_PRECONDITION) {
      if (status == LLM_OK) accepted.fetch_add(1);
    }
  });
  EXPECT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  EXPECT_EQ(finished.load(), accepted.load());
}

TEST_F(AbiThreadsTest, CallbacksSubmitToAnotherEngineAndOneQueueServesBoth) {
  Open(LLM_DRIVE_THREADS);
  llm_queue* queue = nullptr;
  ASSERT_EQ(llm_queue_create(&queue), LLM_OK);
  llm_engine* other = nullptr;
  const llm_engine_options options = EngineOptions(LLM_DRIVE_THREADS);
  ASSERT_EQ(llm_engine_open(model_, &options, &other), LLM_OK);
  struct Relay {
    llm_engine* to;
    llm_queue* queue;
    const std::vector<int32_t>* ids;
  } relay = {other, queue, &ids_};
  llm_request request = Request(ids_);
  request.user_data = &relay;
  request.on_event = [](void* user_data, const llm_event* event) {
    if (event->type != LLM_EVENT_FINISHED) return;
    const Relay* self = static_cast<Relay*>(user_data);
    llm_request next = Request(*self->ids);
    next.queue = self->queue;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(self->to, &next, &id), LLM_OK) << llm_last_error();
    throw 1;  // after FINISHED there is nothing left to end
  };
  llm_request direct = Request(ids_);
  direct.queue = queue;
  constexpr int kRequests = 10;
  for (int i = 0; i < kRequests; ++i) {
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
    ASSERT_EQ(llm_submit(engine_, &direct, &id), LLM_OK);
  }
  std::atomic<int> finished{0};
  PollUntil(queue, 2 * kRequests, &finished);
  EXPECT_EQ(finished.load(), 2 * kRequests);
  EXPECT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  EXPECT_EQ(llm_engine_close(other), LLM_OK);
  EXPECT_EQ(llm_queue_close(queue), LLM_OK);
}

}  // namespace
}  // namespace llm
