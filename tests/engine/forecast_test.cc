// What is predicted at submit beside what comes, on a device that costs exactly what the model
// says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "tests/engine/sim_harness.h"

namespace llm {
namespace {

struct Outcome {
  double bias = 0;    // median of predicted / taken
  double median = 0;  // of |predicted - taken| / taken
  double p90 = 0;
};

class ForecastTest : public testing::Test {
 protected:
  void Open(int32_t max_sequences, int num_blocks, int64_t step_ns, int32_t max_long = 0) {
    HarnessOptions options;
    options.scheduler.max_long_sequences = max_long;
    options.scheduler.long_tokens = 100;
    // With a cap outputs are as long as they may be, so that all can be foreseen.
    if (max_long > 0) options.scheduler.admission = AdmissionPolicy::kReserve;
    options.engine.max_step_tokens = 128;
    options.engine.max_context_tokens = 512;
    options.engine.step_ns = step_ns;
    options.engine.bounds.max_requests = 100000;
    options.scheduler.max_sequences = max_sequences;
    options.scheduler.max_context_tokens = 512;
    options.scheduler.num_blocks = {num_blocks};
    harness_ = std::make_unique<SimHarness>(options);
  }

  int64_t Predict(const RequestSpec& spec) {
    Request request;
    request.prompt.assign(spec.prompt_ids.begin(), spec.prompt_ids.end());
    ForecastQuery query;
    query.request = &request;
    query.cost = kSimCost;
    query.max_step_tokens = 128;
    query.step_ns = step_ns_;
    query.now_ns = harness_->now_ns();
    return harness_->engine().scheduler().Forecast(query).total_ns;
  }

  // Requests of random lengths, which arrive one every `steps` steps on average.
  Outcome Replay(double steps, int32_t mean_output) {
    std::mt19937 random(3);
    const auto draw = [&](double mean) {
      return std::clamp(std::exponential_distribution<>(1 / mean)(random), 2.0, 250.0);
    };
    std::map<uint64_t, int64_t> predicted_ns;
    for (int i = 0; i < 600; ++i) {
      // Nobody knows beforehand how long an output gets.
      RequestSpec spec = harness_->Spec(static_cast<size_t>(draw(60)), 251);
      spec.ignore_eos = false;
      spec.sampling.min_new_tokens = static_cast<int32_t>(draw(mean_output)) - 1;
      const int64_t predicted = Predict(spec);
      const uint64_t id = harness_->Submit(spec);
      if (i >= 100) predicted_ns[id] = predicted;  // lengths are known by then
      for (double gap = draw(steps * 10) / 10; gap > 0; --gap) harness_->Step();
    }
    harness_->RunAll();
    std::vector<double> ratios;
    std::vector<double> errors;
    for (const auto& [id, predicted] : predicted_ns) {
      const double taken = static_cast<double>(harness_->Of(id).stats.ttft_ns);
      ratios.push_back(static_cast<double>(predicted) / taken);
      errors.push_back(std::abs(ratios.back() - 1));
    }
    std::sort(ratios.begin(), ratios.end());
    std::sort(errors.begin(), errors.end());
    const Outcome outcome = {ratios[ratios.size() / 2], errors[errors.size() / 2],
                             errors[errors.size() * 9 / 10]};
    std::printf("bias %.3f, error median %.3f, p90 %.3f\n", outcome.bias, outcome.median,
                outcome.p90);
    return outcome;
  }

  int64_t step_ns_ = 0;
  std::unique_ptr<SimHarness> harness_;
};

TEST_F(ForecastTest, AQueueForPlacesIsForeseen) {
  Open(8, 4096, 0);
  const Outcome outcome = Replay(3.0, 40);
  EXPECT_NEAR(outcome.bias, 1, 0.05);
  EXPECT_LT(outcome.median, 0.08);
}

TEST_F(ForecastTest, AQueueForBlocksIsForeseen) {
  Open(64, 200, 0);
  const Outcome outcome = Replay(4.0, 40);
  EXPECT_NEAR(outcome.bias, 1, 0.1);
  EXPECT_LT(outcome.median, 0.2);
}

TEST_F(ForecastTest, PromptsThatShareStepsAreForeseen) {
  Open(64, 4096, 0);
  const Outcome outcome = Replay(0.45, 4);
  EXPECT_NEAR(outcome.bias, 1, 0.05);
  EXPECT_LT(outcome.median, 0.05);
  EXPECT_LT(outcome.p90, 0.3);
}

// What is predicted of `spec` now, over what it then takes.
class LongCapForecastTest : public ForecastTest {
 protected:
  double Ratio(const RequestSpec& spec) {
    const auto predicted_ns = static_cast<double>(Predict(spec));
    const uint64_t id = harness_->Submit(spec);
    harness_->RunAll();
    return predicted_ns / static_cast<double>(harness_->Of(id).stats.ttft_ns);
  }
  void SubmitAndStep(size_t num_tokens, int32_t max_new_tokens, int steps) {
    harness_->Submit(harness_->Spec(num_tokens, max_new_tokens));
    for (int i = 0; i < steps; ++i) harness_->Step();
  }
};

TEST_F(LongCapForecastTest, ALongRequestWaitsForTheOneThatRuns) {
  Open(8, 4096, 0, 1);
  SubmitAndStep(150, 60, 10);
  EXPECT_NEAR(Ratio(harness_->Spec(120, 2)), 1, 0.05);
}

TEST_F(LongCapForecastTest, ALongRequestWaitsForThoseThatWaitBeforeIt) {
  Open(8, 4096, 0, 1);
  SubmitAndStep(150, 60, 10);
  SubmitAndStep(200, 40, 1);
  SubmitAndStep(110, 30, 1);
  EXPECT_NEAR(Ratio(harness_->Spec(120, 2)), 1, 0.05);
}

TEST_F(LongCapForecastTest, WithTwoPlacesItTakesTheFirstThatGetsFree) {
  Open(8, 4096, 0, 2);
  SubmitAndStep(150, 80, 5);
  SubmitAndStep(150, 30, 5);
  SubmitAndStep(110, 30, 1);
  EXPECT_NEAR(Ratio(harness_->Spec(120, 2)), 1, 0.05);
}

TEST_F(LongCapForecastTest, AShortRequestPassesTheLongOnesThatWait) {
  Open(8, 4096, 0, 1);
  SubmitAndStep(150, 60, 10);
  for (int i = 0; i < 3; ++i) SubmitAndStep(200, 40, 1);
  EXPECT_NEAR(Ratio(harness_->Spec(50, 2)), 1, 0.05);
}

TEST_F(LongCapForecastTest, AShortRequestWithoutAPlaceStillPassesThem) {
  Open(2, 4096, 0, 1);
  SubmitAndStep(150, 100, 5);
  SubmitAndStep(20, 40, 5);
  for (int i = 0; i < 3; ++i) SubmitAndStep(200, 40, 1);
  EXPECT_NEAR(Ratio(harness_->Spec(50, 2)), 1, 0.05);
}

TEST_F(ForecastTest, AnIdleEngineIsForeseenExactly) {
  Open(8, 4096, 0);
  for (const size_t tokens : {2u, 50u, 128u, 130u, 400u}) {
    const RequestSpec spec = harness_->Spec(tokens, 2);
    const int64_t predicted_ns = Predict(spec);
    const uint64_t id = harness_->Submit(spec);
    harness_->RunAll();
    EXPECT_EQ(harness_->Of(id).stats.ttft_ns, predicted_ns) << tokens;
  }
}

}  // namespace
}  // namespace llm
