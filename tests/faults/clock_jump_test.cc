// A host's clock that jumps, runs backwards or tells anything at all: answers stay the same, and
// every time that is told stays a sum of its parts.
#include <gtest/gtest.h>
#include <inlay/llm.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include "tests/faults/tiny_host.h"

namespace llm {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// What it shows is a function of how often it was read.
struct Jumper {
  std::function<int64_t(int64_t reading)> show;
  std::atomic<int64_t> readings{0};
  static int64_t Now(void* self) {
    auto* jumper = static_cast<Jumper*>(self);
    return jumper->show(jumper->readings.fetch_add(1));
  }
};

class ClockJumpTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    ASSERT_EQ(OpenTinyModel(&model_), LLM_OK) << llm_last_error();
    llm_engine* engine = nullptr;
    ASSERT_EQ(OpenTinyEngine(model_, LLM_DRIVE_MANUAL, &engine), LLM_OK) << llm_last_error();
    ASSERT_EQ(AskOnce(engine, LLM_DRIVE_MANUAL, &expected_), LLM_OK);
    ASSERT_EQ(llm_engine_close(engine), LLM_OK);
  }
  void TearDown() override { llm_model_release(model_); }

  // Requests with and without deadlines, more than run at once; how often the clock was read.
  int64_t Run(const std::function<int64_t(int64_t)>& show) {
    Jumper jumper;
    jumper.show = show;
    llm_host host;
    llm_host_init(&host);
    host.now_ns = Jumper::Now;
    host.clock_user_data = &jumper;
    llm_engine_options options = TinyEngineOptions(GetParam());
    options.host = &host;
    llm_engine* engine = nullptr;
    EXPECT_EQ(llm_engine_open(model_, &options, &engine), LLM_OK) << llm_last_error();
    std::vector<Answer> answers(6);
    for (size_t i = 0; i < answers.size(); ++i) {
      llm_request request = TinyRequest();
      if (i % 3 == 1) request.completion_deadline_ns = kMost;
      if (i % 3 == 2) request.first_token_deadline_ns = 1000;
      request.user_data = &answers[i];
      llm_request_id id = 0;
      const llm_status status = llm_submit(engine, &request, &id);
      if (status == LLM_OK) continue;
      // Refused, since it would be late: only where it stated a deadline.
      EXPECT_TRUE(status == LLM_DEADLINE_EXCEEDED && i % 3 != 0) << llm_last_error();
      answers[i].num_finished = 1;
      answers[i].status = status;
    }
    while (std::any_of(answers.begin(), answers.end(),
                       [](const Answer& answer) { return answer.num_finished == 0; })) {
      if (!Pump(engine)) break;
    }
    for (size_t i = 0; i < answers.size(); ++i) Check(answers[i], i % 3 == 2);
    CheckMetrics(engine);
    EXPECT_EQ(llm_engine_close(engine), LLM_OK);
    return jumper.readings.load();
  }

  static bool Pump(llm_engine* engine) {
    const bool manual = GetParam() == LLM_DRIVE_MANUAL;
    uint32_t worked = 1;
    if (manual) {
      EXPECT_EQ(llm_engine_step(engine, &worked), LLM_OK) << llm_last_error();
    }
    llm_event events[8];
    size_t count = 0;
    EXPECT_EQ(
        llm_poll(llm_engine_queue(engine), events, sizeof(events[0]), 8, manual ? 0 : -1, &count),
        LLM_OK);
    for (size_t i = 0; i < count; ++i) {
      static_cast<Answer*>(events[i].user_data)->Take(events[i]);
      if (events[i].type == LLM_EVENT_FINISHED) CheckTimes(*events[i].stats);
    }
    EXPECT_TRUE(worked != 0 || count != 0) << "idle without an end";
    return worked != 0 || count != 0;
  }

  static void CheckTimes(const llm_request_stats& stats) {
    int64_t sum = 0;
    for (const int64_t part :
         {stats.queue_ns, stats.prefill_ns, stats.stall_ns, stats.decode_ns, stats.deliver_ns}) {
      EXPECT_GE(part, 0);
      sum += part;
    }
    EXPECT_EQ(stats.total_ns, sum);
    EXPECT_LE(stats.ttft_ns, stats.total_ns);
  }

  void Check(const Answer& answer, bool may_miss) const {
    EXPECT_EQ(answer.num_finished, 1);
    EXPECT_TRUE(answer.status == LLM_OK || (may_miss && answer.status == LLM_DEADLINE_EXCEEDED))
        << answer.status;
    EXPECT_TRUE(answer.status != LLM_OK || answer.num_ids == expected_.num_ids);
    EXPECT_TRUE(std::equal(answer.ids, answer.ids + answer.num_ids, expected_.ids));
  }

  static void CheckMetrics(llm_engine* engine) {
    llm_metrics_snapshot m;
    llm_metrics_snapshot_init(&m);
    EXPECT_EQ(llm_metrics(engine, &m), LLM_OK);
    EXPECT_EQ(m.healthy, 1u);
    EXPECT_EQ(m.finished_requests_total, m.submitted_requests_total);
    EXPECT_EQ(m.busy_ns_total, m.admit_ns_total + m.schedule_ns_total + m.forward_ns_total +
                                   m.sample_ns_total + m.commit_ns_total + m.deliver_ns_total);
    size_t size = 0;
    EXPECT_EQ(llm_metrics_text(engine, nullptr, 0, &size), LLM_OK);
  }

  llm_model* model_ = nullptr;
  Answer expected_;
};

TEST_P(ClockJumpTest, AnyClockGivesTheSameAnswers) {
  Run([](int64_t) { return int64_t{0}; });
  Run([](int64_t) { return kLeast; });
  Run([](int64_t) { return kMost; });
  Run([](int64_t reading) { return -reading * 1000000; });
  Run([](int64_t reading) { return reading % 2 == 0 ? kMost : kLeast; });
  Run([](int64_t reading) { return reading * 1000000000; });
  Run([](int64_t reading) {
    return static_cast<int64_t>(static_cast<uint64_t>(reading + 1) * 0x9e3779b97f4a7c15u);
  });
}

// Some readings by default; INLAY_EVERY_READING takes all, which takes a minute.
TEST_P(ClockJumpTest, AJumpAtAnyReadingTouchesNoRequestWithoutADeadline) {
  const int64_t readings = Run([](int64_t reading) { return 1 + reading; });
  const int64_t stride = std::getenv("INLAY_EVERY_READING") != nullptr ? 1 : 11;
  int64_t runs = 0;
  for (const int64_t to : {int64_t{86'400'000'000'000}, kMost, kLeast}) {
    for (int64_t n = 0; n < readings && !HasFailure(); n += stride, ++runs) {
      SCOPED_TRACE(testing::Message() << "reading " << n << " and later show " << to);
      Run([n, to](int64_t reading) { return reading < n ? 1 + reading : to; });
    }
  }
  std::printf("%lld jumps over %lld readings\n", static_cast<long long>(runs),
              static_cast<long long>(readings));
}

INSTANTIATE_TEST_SUITE_P(Drives, ClockJumpTest,
                         testing::Values(LLM_DRIVE_MANUAL, LLM_DRIVE_THREADS),
                         [](const auto& drive) {
                           return drive.param == LLM_DRIVE_MANUAL ? "Manual" : "Threads";
                         });

}  // namespace
}  // namespace llm
