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

struct StepSums {
  uint64_t steps = 0, failed = 0, tokens = 0, prefill_tokens = 0, generated = 0, preemptions = 0;
  uint64_t weight_bytes = 0, kv_read = 0, kv_written = 0;
  int64_t last_ns = 0;

  void Add(const StepRecord& record) {
    EXPECT_EQ(record.index, steps + failed);
    EXPECT_GE(record.begin_ns, last_ns) << "steps do not overlap";
    EXPECT_EQ(record.forward_ns + record.host_ns, record.end_ns - record.begin_ns);
    last_ns = record.end_ns;
    weight_bytes += record.weight_bytes_read;
    kv_read += record.kv_bytes_read;
    kv_written += record.kv_bytes_written;
    preemptions += record.preemptions;
    if (record.failed != 0) {
      ++failed;
      return;
    }
    ++steps;
    tokens += record.prefill_tokens + record.decode_sequences;
    prefill_tokens += record.prefill_tokens;
    generated += record.generated_tokens;
  }
};

struct RecordSums {
  uint64_t count = 0;
  uint64_t of_kind[12] = {};
  uint64_t tokens[12] = {};

  void Add(const RequestRecord& record) {
    EXPECT_EQ(record.index, count++);
    const size_t kind = static_cast<size_t>(record.kind);
    ASSERT_LT(kind, 12u);
    ++of_kind[kind];
    tokens[kind] += record.tokens;
  }
  uint64_t Count(RecordKind kind) const { return of_kind[static_cast<size_t>(kind)]; }
  uint64_t Tokens(RecordKind kind) const { return tokens[static_cast<size_t>(kind)]; }
};

void ExpectStepsReconciled(const StepSums& sums, const EngineMetrics& metrics) {
  const StepCounters& step = metrics.step;
  EXPECT_EQ(sums.steps, step.steps_total);
  EXPECT_EQ(sums.failed, step.failed_steps_total);
  EXPECT_EQ(sums.tokens, step.scheduled_tokens_total);
  EXPECT_EQ(sums.generated, step.generated_tokens_total);
  EXPECT_EQ(sums.preemptions, metrics.scheduler.preemptions_total);
  EXPECT_EQ(sums.weight_bytes, step.weight_bytes_read_total);
  EXPECT_EQ(sums.kv_read, step.kv_bytes_read_total);
  EXPECT_EQ(sums.kv_written, step.kv_bytes_written_total);
}

}  // namespace

void ExpectWholeTime(const RequestStats& stats) {
  EXPECT_EQ(stats.queue_ns + stats.prefill_ns + stats.stall_ns + stats.decode_ns + stats.deliver_ns,
            stats.total_ns);
  for (const int64_t part :
       {stats.queue_ns, stats.prefill_ns, stats.stall_ns, stats.decode_ns, stats.deliver_ns}) {
    EXPECT_GE(part, 0);
  }
}

void ExpectFirstTokenTime(const RequestStats& stats) {
  if (stats.ttft_ns < 0) return;
  EXPECT_LE(stats.queue_ns + stats.prefill_ns, stats.ttft_ns);
  EXPECT_LE(stats.ttft_ns, stats.queue_ns + stats.prefill_ns + stats.stall_ns);
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

void ExpectLogReconciled(const StepLog& log, const EngineMetrics& metrics) {
  StepSums steps;
  RecordSums records;
  uint64_t cursor = 0;
  if (metrics.step.steps_total + metrics.step.failed_steps_total <= kStepRingRecords) {
    log.steps().Read(&cursor, kStepRingRecords, [&](const StepRecord& r) { steps.Add(r); });
    ExpectStepsReconciled(steps, metrics);
  }
  std::vector<RequestRecord> all;
  cursor = 0;
  log.requests().Read(&cursor, kRequestRingRecords,
                      [&](const RequestRecord& record) { all.push_back(record); });
  if (cursor > kRequestRingRecords || !metrics.healthy) return;
  for (const RequestRecord& record : all) records.Add(record);
  const Histogram& victims = metrics.step.histograms.Of(HistogramId::kVictimTokens);
  EXPECT_EQ(records.Count(RecordKind::kFinished), metrics.step.finished_requests_total);
  EXPECT_EQ(records.Tokens(RecordKind::kTokens), metrics.step.generated_tokens_total);
  EXPECT_EQ(records.Tokens(RecordKind::kFinished), metrics.step.generated_tokens_total);
  EXPECT_EQ(records.Count(RecordKind::kPreempted), metrics.scheduler.preemptions_total);
  EXPECT_EQ(records.Count(RecordKind::kPreempted), victims.count);
  EXPECT_EQ(records.Tokens(RecordKind::kPreempted), victims.sum);
  EXPECT_EQ(records.Count(RecordKind::kRejected), metrics.rejected_requests_total);
  EXPECT_EQ(records.Count(RecordKind::kStepFailed), metrics.step.failed_steps_total);
  EXPECT_GE(records.Tokens(RecordKind::kCached), metrics.scheduler.cached_tokens_total);
  if (steps.steps > 0) {
    EXPECT_EQ(records.Tokens(RecordKind::kPrefillChunk), steps.prefill_tokens);
  }
}

}  // namespace llm
