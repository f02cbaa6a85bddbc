// Each total is compared with its sum by name.
#include "tests/engine/reconcile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace llm {
namespace {

template <typename T>
uint64_t Sum(const std::vector<RequestStats>& finished, T RequestStats::*field) {
  uint64_t sum = 0;
  for (const RequestStats& stats : finished) {
    sum += static_cast<uint64_t>(std::max<T>(0, stats.*field));
  }
  return sum;
}

}  // namespace

void ExpectWholeTime(const RequestStats& stats) {
  EXPECT_EQ(stats.queue_ns + stats.prefill_ns + stats.stall_ns + stats.decode_ns + stats.deliver_ns,
            stats.total_ns);
  for (const int64_t part :
       {stats.queue_ns, stats.prefill_ns, stats.stall_ns, stats.decode_ns, stats.deliver_ns}) {
    EXPECT_GE(part, 0);
  }
  if (stats.ttft_ns >= 0) {
    EXPECT_LE(stats.queue_ns + stats.prefill_ns, stats.ttft_ns);
    EXPECT_LE(stats.ttft_ns, stats.queue_ns + stats.prefill_ns + stats.stall_ns);
  }
}

void ExpectReconciled(const std::vector<RequestStats>& finished, const EngineMetrics& metrics) {
  const StepCounters& step = metrics.step;
  const SchedulerCounters& scheduler = metrics.scheduler;
  const auto sum_of = [&](HistogramId id) { return step.histograms.Of(id).sum; };
  const auto unsigned_of = [](int64_t value) { return static_cast<uint64_t>(value); };
  for (const RequestStats& stats : finished) ExpectWholeTime(stats);
  EXPECT_EQ(step.finished_requests_total, finished.size());
  EXPECT_EQ(Sum(finished, &RequestStats::prompt_tokens), sum_of(HistogramId::kPromptTokens));
  EXPECT_EQ(Sum(finished, &RequestStats::cached_tokens), scheduler.cached_tokens_total);
  EXPECT_EQ(Sum(finished, &RequestStats::generated_tokens), step.generated_tokens_total);
  EXPECT_EQ(Sum(finished, &RequestStats::generated_tokens), sum_of(HistogramId::kGeneratedTokens));
  EXPECT_EQ(Sum(finished, &RequestStats::recomputed_tokens), scheduler.recomputed_tokens_total);
  EXPECT_EQ(Sum(finished, &RequestStats::preemptions), scheduler.preemptions_total);
  const RequestTimes& times = step.request_ns_total;
  EXPECT_EQ(Sum(finished, &RequestStats::queue_ns), unsigned_of(times.queue_ns));
  EXPECT_EQ(Sum(finished, &RequestStats::prefill_ns), unsigned_of(times.prefill_ns));
  EXPECT_EQ(Sum(finished, &RequestStats::stall_ns), unsigned_of(times.stall_ns));
  EXPECT_EQ(Sum(finished, &RequestStats::decode_ns), unsigned_of(times.decode_ns));
  EXPECT_EQ(Sum(finished, &RequestStats::deliver_ns), unsigned_of(times.deliver_ns));
  EXPECT_EQ(Sum(finished, &RequestStats::queue_ns), sum_of(HistogramId::kQueueTime));
  EXPECT_EQ(Sum(finished, &RequestStats::ttft_ns), sum_of(HistogramId::kTtft));
  EXPECT_EQ(Sum(finished, &RequestStats::ttft_ns), step.ttft_ns_total);
  EXPECT_EQ(Sum(finished, &RequestStats::total_ns), sum_of(HistogramId::kCompletionTime));
}

}  // namespace llm
