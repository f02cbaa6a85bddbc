// One busy workload, and one blow to it at step n, for every n: exactly one FINISHED each, blocks
// conserved, and the requests that were not meant answered bit for bit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <new>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

// Seven requests of every kind in a pool that is too small for them, so that they are preempted.
// With a second tier, a block at a time returns from it.
HarnessOptions TightOptions(bool tier) {
  HarnessOptions options;
  if (tier) options.spill = {testing::TempDir(), 1 << 16};
  options.engine.slice_bytes = 1;
  options.engine.max_context_tokens = 64;
  options.scheduler.max_context_tokens = 64;
  options.scheduler.max_sequences = 8;
  options.scheduler.num_blocks = {18, 18};
  options.scheduler.groups.push_back(KvGroupSpec{8, {1}});
  return options;
}

class Workload {
 public:
  explicit Workload(bool tier = false) : harness(TightOptions(tier)) {
    const std::string same(30, 'a');
    if (tier) Spill({same, std::string(40, 'x'), std::string(44, 'y'), std::string(48, 'z')});
    Add(harness.Spec(same, 24));
    Add(harness.Spec(same + "b", 20));
    RequestSpec spec = harness.Spec("choose", 8);
    spec.choices = 3;
    spec.sampling.temperature = 1.0f;
    spec.has_seed = true;
    Add(spec);
    spec = harness.Spec("what of the prompt", 6);
    spec.num_prompt_logprobs = 1;
    spec.sampling.num_logprobs = 2;
    Add(spec);
    spec = harness.Spec("called", 25);
    spec.handler.host = this;
    spec.handler.call = [](void* host, const Event& event) {
      auto* work = static_cast<Workload*>(host);
      work->called.Add(event);
      if (work->called.num_events == work->throw_at) throw 5;
    };
    Add(spec);
    spec = harness.Spec("elsewhere", 30);
    spec.queue = queue;
    Add(spec);
    Add(harness.Spec("last", 40));
  }

  // Steps until it is idle; `between` runs before each step with its number.
  void Run(const std::function<void(int)>& between) {
    for (int step = 0; step < 10000; ++step) {
      if (between) between(step);
      if (!harness.engine().loop().healthy() || closed || !harness.Step()) break;
      harness.Poll();
      PollElsewhere();
    }
    harness.Poll();
    PollElsewhere();
  }
  const Received& Of(size_t index) {
    if (index == kCalled) return called;
    return index == kElsewhere ? elsewhere : harness.Of(ids[index]);
  }
  // What every request got, choices one after the other.
  std::vector<Received> Answers() {
    std::vector<Received> all;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i != kChoices) all.push_back(Of(i));
      for (uint32_t choice = 0; i == kChoices && choice < 3; ++choice) {
        all.push_back(harness.Of(ids[i], choice));
      }
    }
    return all;
  }

  // Of all steps that the runner has seen, which ones are the workload's.
  int first_step = 0;
  uint64_t num_before = 0;  // requests that ended before it
  static constexpr size_t kChoices = 2;
  static constexpr size_t kCalled = 4;
  static constexpr size_t kElsewhere = 5;
  Received called;
  Received elsewhere;
  std::shared_ptr<CompletionQueue> queue = std::make_shared<CompletionQueue>();
  EngineHarness harness;
  std::vector<uint64_t> ids;
  int throw_at = 0;           // this call of `called`, from 1
  bool closed = false;        // no further step
  bool queue_closed = false;  // `elsewhere` gets nothing more

 private:
  // One after the other, so that each evicts those before it.
  void Spill(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      harness.Submit(harness.Spec(text, 4));
      harness.RunAll();
    }
    first_step = harness.runner().steps();
    num_before = texts.size();
  }
  void Add(const RequestSpec& spec) { ids.push_back(harness.Submit(spec)); }
  void PollElsewhere() {
    if (queue_closed) return;
    const auto add = [this](size_t, const Event& event) { elsewhere.Add(event); };
    while (queue->Poll(8, 0, add).value_or(0) > 0) {
    }
  }
};

bool SameLogprobs(const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.id == y.id && x.logprob == y.logprob;
  });
}

class EveryStepTest : public testing::Test {
 protected:
  explicit EveryStepTest(bool tier = false) : tier_(tier) {}
  void SetUp() override {
    Workload quiet(tier_);
    quiet.harness.runner().before = [](int, const StepPlan&) { return absl::OkStatus(); };
    quiet.Run(nullptr);
    num_steps_ = quiet.harness.runner().steps() - quiet.first_step;
    expected_ = quiet.Answers();
    const EngineMetrics metrics = quiet.harness.engine().Metrics();
    EXPECT_GT(metrics.scheduler.preemptions_total, 0u);
    EXPECT_EQ(metrics.step.spill.returned_blocks_total > 0, tier_);
    for (const Received& answer : expected_) ASSERT_EQ(answer.status, absl::StatusCode::kOk);
  }

  // Whoever ended well has the whole answer, whoever did not a part of it.
  int CheckAnswers(Workload* work) {
    int num_touched = 0;
    const std::vector<Received> got = work->Answers();
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "answer " << i);
      EXPECT_LE(got[i].ids.size(), expected_[i].ids.size());
      EXPECT_TRUE(std::equal(got[i].ids.begin(), got[i].ids.end(), expected_[i].ids.begin()));
      if (work->queue_closed && got[i].num_finished == 0) continue;
      EXPECT_EQ(got[i].num_finished, 1);
      if (got[i].status != absl::StatusCode::kOk) {
        ++num_touched;
        continue;
      }
      EXPECT_EQ(got[i].ids, expected_[i].ids);
      EXPECT_EQ(got[i].text, expected_[i].text);
      EXPECT_TRUE(SameLogprobs(got[i].logprobs, expected_[i].logprobs));
      EXPECT_TRUE(SameLogprobs(got[i].prompt_logprobs, expected_[i].prompt_logprobs));
    }
    EXPECT_EQ(work->harness.Of(work->ids[Workload::kChoices]).num_finished, 1);
    const EngineMetrics metrics = work->harness.engine().Metrics();
    EXPECT_EQ(metrics.step.finished_requests_total, work->num_before + work->ids.size());
    if (metrics.healthy) {
      EXPECT_EQ(metrics.scheduler.held_blocks_current, 0);
    }
    return num_touched;
  }

  // `blow` runs before step n, outside of it.
  void ForEachStep(const char* name, const std::function<void(Workload*)>& blow, int most_touched) {
    for (int n = 0; n < num_steps_ && !HasFailure(); ++n) {
      SCOPED_TRACE(testing::Message() << name << " before step " << n);
      Workload work(tier_);
      work.Run([&](int step) {
        if (step == n) blow(&work);
      });
      EXPECT_LE(CheckAnswers(&work), most_touched);
    }
    std::printf("%s: before each of %d steps\n", name, num_steps_);
  }

  // The runner fails `length` times from step n on, before or after it has written the keys.
  void ForEachFault(const char* name, int length, bool after,
                    const std::function<absl::Status()>& fault, int most_touched) {
    for (int n = 0; n < num_steps_ && !HasFailure(); ++n) {
      SCOPED_TRACE(testing::Message() << name << " in step " << n);
      Workload work(tier_);
      ScriptedRunner& runner = work.harness.runner();
      (after ? runner.after : runner.before) = [&, n, first_step = work.first_step](
                                                   int step, const StepPlan&) {
        step -= first_step;
        return step >= n && step < n + length ? fault() : absl::OkStatus();
      };
      work.Run(nullptr);
      EXPECT_LE(CheckAnswers(&work), most_touched);
      EXPECT_EQ(work.harness.engine().Metrics().step.failed_steps_total,
                static_cast<uint64_t>(length));
    }
    std::printf("%s: %d failure(s) from each of %d steps on\n", name, length, num_steps_);
  }

  const bool tier_;
  int num_steps_ = 0;
  std::vector<Received> expected_;
};

// With a second tier, whose file fails.
class EveryStepOfATierTest : public EveryStepTest {
 protected:
  EveryStepOfATierTest() : EveryStepTest(/*tier=*/true) {
    getrlimit(RLIMIT_FSIZE, &limit_);
    Workload without;
    without.Run(nullptr);
    without_ = without.Answers();
  }
  void TearDown() override { SetFileLimit(limit_.rlim_cur); }
  void SetFileLimit(rlim_t bytes) const {
    const rlimit limit = {bytes, limit_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  static void Replace(Workload* work, const char* path, int flags) {
    const int fd = open(path, flags);
    ASSERT_GE(fd, 0);
    ASSERT_GE(dup2(fd, work->harness.spill().fd()), 0);
    close(fd);
  }

  rlimit limit_ = {};
  std::vector<Received> without_;  // what is answered without a tier
};

TEST_F(EveryStepTest, OneOrTwoFailuresTouchNoAnswer) {
  const auto fault = [] { return absl::InternalError("injected"); };
  for (const bool after : {false, true}) {
    ForEachFault(after ? "error behind the keys" : "error", 1, after, fault, 0);
    ForEachFault(after ? "errors behind the keys" : "errors", 2, after, fault, 0);
  }
}

TEST_F(EveryStepTest, AnExceptionIsAFailure) {
  const auto fault = []() -> absl::Status { throw std::bad_alloc(); };
  for (const bool after : {false, true}) ForEachFault("exception", 1, after, fault, 0);
}

TEST_F(EveryStepTest, AThirdFailureTouchesOneAnswerAtMost) {
  const auto fault = [] { return absl::ResourceExhaustedError("injected"); };
  for (const bool after : {false, true}) ForEachFault("errors", 3, after, fault, 1);
}

TEST_F(EveryStepTest, ACancelTouchesItsRequestAlone) {
  for (size_t victim = 0; victim < 7; ++victim) {
    const auto cancel = [victim](Workload* work) {
      work->harness.engine().Cancel(work->ids[victim]).IgnoreError();
    };
    ForEachStep("cancel", cancel, victim == Workload::kChoices ? 3 : 1);
  }
}

TEST_F(EveryStepTest, AStormOfCancelsEndsEachOnce) {
  const auto storm = [](Workload* work) {
    for (int round = 0; round < 3; ++round) {
      for (const uint64_t id : work->ids) work->harness.engine().Cancel(id).IgnoreError();
    }
  };
  ForEachStep("storm of cancels", storm, 9);
}

TEST_F(EveryStepTest, ShutdownEndsEachOnce) {
  const auto shut_down = [](Workload* work) {
    EXPECT_TRUE(work->harness.engine().Shutdown(-1).ok());
    work->closed = true;
  };
  ForEachStep("shutdown", shut_down, 9);
}

TEST_F(EveryStepTest, AQueueClosedWithEventsPendingTouchesNoOtherAnswer) {
  const auto close_queue = [](Workload* work) {
    EXPECT_TRUE(work->queue->Close().ok());
    work->queue_closed = true;
  };
  ForEachStep("queue closed", close_queue, 0);
}

TEST_F(EveryStepTest, AnyCallThatThrowsEndsItsRequestAlone) {
  const int num_calls = 26;
  for (int n = 1; n <= num_calls; ++n) {
    SCOPED_TRACE(testing::Message() << "call " << n);
    Workload work;
    work.throw_at = n;
    work.Run(nullptr);
    EXPECT_EQ(CheckAnswers(&work), n < num_calls - 1 ? 1 : 0) << "the last two have it all";
    EXPECT_EQ(work.called.num_events, n < num_calls ? n + 1 : n);
  }
}

TEST_F(EveryStepTest, AFlushTouchesNoAnswer) {
  const auto flush = [](Workload* work) { EXPECT_TRUE(work->harness.engine().FlushCache().ok()); };
  ForEachStep("flush", flush, 0);
}

TEST_F(EveryStepOfATierTest, ChangesNoAnswer) {
  ASSERT_EQ(expected_.size(), without_.size());
  for (size_t i = 0; i < expected_.size(); ++i) EXPECT_EQ(expected_[i].ids, without_[i].ids);
}

TEST_F(EveryStepOfATierTest, DamagedBytesTouchNoAnswer) {
  const auto damage = [](Workload* work) {
    const std::string bytes(1 << 13, 'x');
    EXPECT_EQ(pwrite(work->harness.spill().fd(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  };
  ForEachStep("damaged bytes", damage, 0);
}

TEST_F(EveryStepOfATierTest, AFileThatIsCutTouchesNoAnswer) {
  const auto cut = [](Workload* work) {
    EXPECT_EQ(ftruncate(work->harness.spill().fd(), 100), 0);  // within a block: a short read
  };
  ForEachStep("file cut", cut, 0);
}

TEST_F(EveryStepOfATierTest, AFullDiskTouchesNoAnswer) {
  ForEachStep(
      "full disk", [](Workload* work) { Replace(work, "/dev/full", O_RDWR); }, 0);
}

TEST_F(EveryStepOfATierTest, AnUnreadableFileTouchesNoAnswer) {
  ForEachStep(
      "unreadable", [](Workload* work) { Replace(work, "/dev/null", O_WRONLY); }, 0);
}

// The limit lies within a block, so that its write is short, and the rest of it fails.
TEST_F(EveryStepOfATierTest, AShortWriteTouchesNoAnswer) {
  for (int n = 0; n < num_steps_ && !HasFailure(); n += 3) {
    SCOPED_TRACE(testing::Message() << "limit before step " << n);
    Workload work(true);
    work.Run([&](int step) {
      if (step == n) SetFileLimit(static_cast<rlim_t>(32 * n + 5));
    });
    SetFileLimit(limit_.rlim_cur);
    EXPECT_EQ(CheckAnswers(&work), 0);
  }
}

TEST_F(EveryStepOfATierTest, ACancelAFlushAndAShutdownLeaveNothingHeld) {
  for (size_t victim = 0; victim < 7; ++victim) {
    const auto cancel = [victim](Workload* work) {
      work->harness.engine().Cancel(work->ids[victim]).IgnoreError();
    };
    ForEachStep("cancel", cancel, victim == Workload::kChoices ? 3 : 1);
  }
  const auto flush = [](Workload* work) { EXPECT_TRUE(work->harness.engine().FlushCache().ok()); };
  ForEachStep("flush", flush, 0);
  const auto shut_down = [](Workload* work) {
    EXPECT_TRUE(work->harness.engine().Shutdown(-1).ok());
    work->closed = true;
  };
  ForEachStep("shutdown", shut_down, 9);
}

TEST_F(EveryStepOfATierTest, OneOrTwoFailuresTouchNoAnswer) {
  const auto fault = [] { return absl::InternalError("injected"); };
  ForEachFault("error", 1, false, fault, 0);
  ForEachFault("errors behind the keys", 2, true, fault, 0);
}

TEST_F(EveryStepTest, AClockThatJumpsForwardTouchesNoAnswerWithoutDeadline) {
  const auto jump = [](Workload* work) { work->harness.clock().AdvanceNs(int64_t{1} << 61); };
  ForEachStep("clock jump", jump, 0);
}

}  // namespace
}  // namespace llm
