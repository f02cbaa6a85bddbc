// Contract of a request with several choices: their events, their seeds, and how they end.
#include "src/engine/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/engine/choices_harness.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

TEST(ChoicesTest, EachChoiceIsTheAnswerOfARequestWithItsSeed) {
  HarnessOptions options;
  EngineHarness harness(options);
  const RequestSpec spec = Choices(harness, "abcdefghij", 12, 4);
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  ExpectEachEqualsItsAloneRun(options, spec, id, &harness);
  std::set<std::vector<int32_t>> answers;
  for (uint32_t i = 0; i < 4; ++i) answers.insert(harness.Of(id, i).ids);
  EXPECT_EQ(answers.size(), 4u);
  EXPECT_EQ(harness.Of(id, 0).stats.seed, 42u) << "choice 0 is the request without choices";
}

TEST(ChoicesTest, SeedsOfNeighbouringRequestsDoNotMeet) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint32_t choice = 0; choice < 100; ++choice) seeds.insert(ChoiceSeed(seed, choice));
  }
  EXPECT_EQ(seeds.size(), 10000u);
}

TEST(ChoicesTest, EveryChoiceFinishesAndThenTheRequestOnce) {
  EngineHarness harness;
  auto queue = std::make_shared<CompletionQueue>(true);
  RequestSpec spec = Choices(harness, "abcdef", 5, 3);
  spec.queue = queue;
  const uint64_t id = harness.Submit(spec);
  while (harness.Step()) {
  }
  std::vector<EventType> types[3];
  int num_finished = 0;
  const auto receive = [&](size_t, const Event& event) {
    EXPECT_EQ(event.id, id);
    EXPECT_EQ(num_finished, 0) << "FINISHED is the last";
    if (event.type == EventType::kFinished) {
      ++num_finished;
      EXPECT_EQ(event.choice, 0u);
      EXPECT_EQ(event.reason, FinishReason::kLength);
      EXPECT_EQ(event.stats->prompt_tokens, 6);
      EXPECT_EQ(event.stats->generated_tokens, 15);
      EXPECT_EQ(event.stats->seed, 42u);
      return;
    }
    types[event.choice].push_back(event.type);
    if (event.type != EventType::kChoiceFinished) return;
    EXPECT_EQ(event.stats->generated_tokens, 5);
    EXPECT_EQ(event.reason, FinishReason::kLength);
  };
  // One at a time: the order must not come from the size of the poll.
  while (*queue->Poll(1, 0, receive) > 0) {
  }
  EXPECT_EQ(num_finished, 1);
  for (const auto& of_choice : types) {
    EXPECT_EQ(of_choice, (std::vector<EventType>{EventType::kTokens, EventType::kChoiceFinished}));
  }
}

TEST(ChoicesTest, CountersCountThemAsOneRequest) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(Choices(harness, "abcdef", 5, 3));
  harness.RunAll();
  const RequestStats& stats = harness.Of(id).stats;
  const StepCounters step = harness.engine().Metrics().step;
  const auto sum = [&](HistogramId histogram) {
    EXPECT_EQ(step.histograms.Of(histogram).count, 1u);
    return static_cast<int64_t>(step.histograms.Of(histogram).sum);
  };
  EXPECT_EQ(step.finished_requests_total, 1u);
  EXPECT_EQ(sum(HistogramId::kPromptTokens), 6);
  EXPECT_EQ(sum(HistogramId::kGeneratedTokens), 15);
  EXPECT_EQ(sum(HistogramId::kTtft), stats.ttft_ns);
  EXPECT_EQ(stats.ttft_ns, harness.Of(id, 0).stats.ttft_ns);
  EXPECT_EQ(sum(HistogramId::kCompletionTime), stats.total_ns);
  EXPECT_EQ(
      sum(HistogramId::kQueueTime) + sum(HistogramId::kPrefillTime) + sum(HistogramId::kDecodeTime),
      stats.total_ns);
  EXPECT_EQ(step.histograms.Of(HistogramId::kTokenGap).count, 12u);
}

TEST(ChoicesTest, TheFirstChoiceTellsThePrompt) {
  HarnessOptions options;
  EngineHarness harness(options);
  RequestSpec spec = Choices(harness, "abcdefghij", 5, 3);
  spec.num_prompt_logprobs = 1;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id, 0).prompt_ids.size(), 9u);
  EXPECT_EQ(harness.Of(id, 1).num_prompt_events, 0);
  EXPECT_EQ(harness.Of(id, 2).num_prompt_events, 0);
  EXPECT_EQ(harness.engine().Metrics().step.computed_tokens_total, 10u + 2u);
}

TEST(ChoicesTest, OneChoiceIsAnOrdinaryRequest) {
  EngineHarness harness;
  const uint64_t id = harness.Submit(Choices(harness, "abcdef", 5, 1));
  harness.RunAll();
  EXPECT_EQ(harness.Of(id, 0).num_finished, 0) << "no CHOICE_FINISHED";
  EXPECT_EQ(harness.Of(id).num_finished, 1);
}

TEST(ChoicesTest, CallbacksGetTheFinishedLast) {
  std::vector<std::pair<EventType, uint32_t>> seen;
  EventHandler handler;
  handler.call = [](void* host, const Event& event) {
    static_cast<decltype(seen)*>(host)->emplace_back(event.type, event.choice);
  };
  handler.host = &seen;
  EngineHarness harness;
  RequestSpec spec = Choices(harness, "abcdef", 1, 3);
  spec.handler = handler;
  harness.Submit(spec);
  harness.RunAll();
  ASSERT_EQ(seen.size(), 7u);
  EXPECT_EQ(seen.back().first, EventType::kFinished);
  for (uint32_t i = 0; i < 3; ++i) {
    std::vector<EventType> types;
    for (const auto& [type, choice] : seen) {
      if (choice == i && type != EventType::kFinished) types.push_back(type);
    }
    EXPECT_EQ(types, (std::vector<EventType>{EventType::kTokens, EventType::kChoiceFinished}));
  }
}

TEST(ChoicesTest, AnExceptionOutOfACallbackEndsAllChoices) {
  int num_finished = 0;
  EventHandler handler;
  handler.call = [](void* host, const Event& event) {
    if (event.type == EventType::kTokens && event.choice == 1) throw 1;
    if (event.type == EventType::kFinished) {
      ++*static_cast<int*>(host);
      EXPECT_EQ(event.reason, FinishReason::kError);
    }
  };
  handler.host = &num_finished;
  EngineHarness harness;
  RequestSpec spec = Choices(harness, "abcdef", 50, 3);
  spec.handler = handler;
  harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(num_finished, 1);
  EXPECT_LT(harness.runner().steps(), 10);
}

TEST(ChoicesTest, CancelEndsEveryChoiceThatIsOpen) {
  EngineHarness harness;
  RequestSpec spec = Choices(harness, "abcdef", 50, 3);
  const uint64_t id = harness.Submit(spec);
  for (int i = 0; i < 4; ++i) harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(harness.Of(id, i).num_finished, 1);
    EXPECT_EQ(harness.Of(id, i).reason, FinishReason::kCancelled);
    EXPECT_EQ(harness.Of(id, i).status, absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kCancelled);
  EXPECT_EQ(harness.Of(id).message, "cancelled");
  EXPECT_EQ(harness.engine().Cancel(id).code(), absl::StatusCode::kNotFound);
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(metrics.submitted_requests_total, 1u);
  EXPECT_EQ(metrics.step.finished_requests_total, 1u);
  EXPECT_EQ(metrics.step.cancelled_requests_total, 1u);
}

TEST(ChoicesTest, CancelDuringThePrefillEndsTheWaitingChoicesToo) {
  EngineHarness harness;
  const std::string prompt(100, 'a');
  const uint64_t id = harness.Submit(Choices(harness, prompt, 50, 3));
  harness.Step();
  EXPECT_TRUE(harness.engine().Cancel(id).ok());
  harness.RunAll();
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(harness.Of(id, i).reason, FinishReason::kCancelled);
  EXPECT_EQ(harness.Of(id).num_finished, 1);
  EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 0);
}

TEST(ChoicesTest, TheRequestsReasonIsThatOfTheFirstChoiceThatDidNotEndWell) {
  HarnessOptions options;
  options.scheduler.max_sequences = 1;
  EngineHarness harness(options);
  RequestSpec spec = Choices(harness, "abcdef", 5, 3);
  spec.completion_timeout_ns = 7000;
  const uint64_t id = harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.Of(id, 0).reason, FinishReason::kLength);
  EXPECT_EQ(harness.Of(id, 1).reason, FinishReason::kDeadline);
  EXPECT_EQ(harness.Of(id, 2).reason, FinishReason::kDeadline);
  EXPECT_EQ(harness.Of(id).reason, FinishReason::kDeadline);
  EXPECT_EQ(harness.Of(id).status, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(harness.Of(id).stats.generated_tokens, static_cast<int32_t>(harness.Of(id).ids.size()));
  EXPECT_EQ(harness.engine().Metrics().step.deadline_requests_total, 1u);
}

TEST(ChoicesTest, ShutdownFinishesEveryChoiceAndTheRequest) {
  EngineHarness harness;
  const uint64_t running = harness.Submit(Choices(harness, "abcdef", 50, 3));
  for (int i = 0; i < 3; ++i) harness.Step();
  const uint64_t queued = harness.Submit(Choices(harness, "abcdef", 50, 2));
  EXPECT_TRUE(harness.engine().Shutdown(0).ok());
  harness.Poll();
  for (const uint64_t id : {running, queued}) {
    EXPECT_EQ(harness.Of(id).num_finished, 1);
    EXPECT_EQ(harness.Of(id, 0).reason, FinishReason::kCancelled);
    EXPECT_EQ(harness.Of(id, 1).reason, FinishReason::kCancelled);
  }
}

TEST(ChoicesTest, AnUnhealthyEngineFinishesEveryChoiceOnce) {
  EngineHarness harness;
  harness.runner().before = [](int step, const StepPlan&) {
    return step > 3 ? absl::InternalError("device gone") : absl::OkStatus();
  };
  const uint64_t id = harness.Submit(Choices(harness, "abcdef", 50, 3));
  for (int i = 0; i < 40 && harness.engine().Metrics().healthy; ++i) harness.Step();
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_FALSE(metrics.healthy);
  harness.Poll();
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(harness.Of(id, i).num_finished, 1);
    EXPECT_EQ(harness.Of(id, i).status, absl::StatusCode::kInternal);
  }
  EXPECT_EQ(harness.Of(id).num_finished, 1);
  EXPECT_THAT(harness.Of(id).message, HasSubstr("device gone"));
  EXPECT_EQ(metrics.step.failed_requests_total, 1u);
}

TEST(ChoicesTest, ASlowReaderPausesChoicesAndLosesNothing) {
  HarnessOptions options;
  options.engine.max_pending_bytes = 20;
  EngineHarness harness(options);
  auto slow = std::make_shared<CompletionQueue>(true);
  RequestSpec spec = Choices(harness, "abcdefg", 40, 3);
  spec.queue = slow;
  harness.Submit(spec);
  harness.RunAll();
  EXPECT_EQ(harness.engine().Metrics().step.paused_current, 3u);
  Received whole;
  Received received[3];
  for (int i = 0; i < 100 && whole.num_finished == 0; ++i) {
    ASSERT_TRUE(slow->Poll(4, 0,
                           [&](size_t, const Event& event) {
                             whole.Add(event);
                             if (event.type == EventType::kFinished) return;
                             received[event.choice].Add(event, EventType::kChoiceFinished);
                           })
                    .ok());
    harness.RunAll();
  }
  EXPECT_EQ(whole.num_finished, 1);
  EXPECT_FALSE(whole.token_after_finish);
  spec.choices = 1;
  for (const Received& choice : received) {
    spec.queue = nullptr;
    spec.sampling.seed = choice.stats.seed;
    EXPECT_EQ(choice.ids, RunAlone(HarnessOptions(), spec).ids);
  }
}

TEST(ChoicesTest, ChoicesAreBoundedAndTakeAPlaceEach) {
  HarnessOptions options;
  options.engine.bounds.max_requests = 5;
  options.engine.bounds.max_tokens = 30;
  EngineHarness harness(options);
  uint64_t id = 0;
  const auto refused = [&](int32_t choices, absl::string_view text, absl::StatusCode code,
                           const char* message) {
    const absl::Status status = harness.engine().Submit(Choices(harness, text, 2, choices), &id);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  refused(kMaxChoices + 1, "abc", absl::StatusCode::kInvalidArgument, "choices: 129");
  refused(0, "abc", absl::StatusCode::kInvalidArgument, "choices: 0");
  refused(6, "abc", absl::StatusCode::kInvalidArgument, "max_queued_requests");
  refused(5, "abcdefg", absl::StatusCode::kInvalidArgument, "max_queued_tokens");
  RequestSpec ids = Choices(harness, "", 2, 5);
  const std::vector<int32_t> prompt = harness.tokenizer().Ids("abcdefg");
  ids.prompt_kind = PromptKind::kIds;
  ids.prompt_ids = prompt;
  EXPECT_THAT(std::string(harness.engine().Submit(ids, &id).message()),
              HasSubstr("max_queued_tokens"));
  harness.Submit(Choices(harness, "abc", 2, 3));
  refused(3, "abc", absl::StatusCode::kResourceExhausted, "max_queued_requests");
  refused(2, "abcdefghijkl", absl::StatusCode::kResourceExhausted, "max_queued_tokens");
  harness.RunAll();
  harness.Submit(Choices(harness, "abc", 2, 5));
  harness.RunAll();
}

TEST(ChoicesTest, ThreadsDeliverTheFinishedLast) {
  HarnessOptions options;
  options.engine.manual = false;
  EngineHarness harness(options);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(harness.Submit(Choices(harness, "abcdef", 9, 4)));
  int num_finished = 0;
  std::map<uint64_t, int> open;
  while (num_finished < 10) {
    const auto polled = harness.engine().queue()->Poll(3, -1, [&](size_t, const Event& event) {
      if (event.type == EventType::kChoiceFinished) ++open[event.id];
      if (event.type != EventType::kFinished) return;
      ++num_finished;
      EXPECT_EQ(open[event.id], 4);
    });
    ASSERT_TRUE(polled.ok());
  }
}

}  // namespace
}  // namespace llm
