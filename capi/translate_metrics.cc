// Field by field: the ABI's struct is flat, and its order is history.
#include "capi/translate_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

// What a total consists of.
void TranslateParts(const EngineMetrics& metrics, llm_metrics_snapshot* c) {
  const StepCounters& step = metrics.step;
  const auto part = [&](StepPart p) { return step.part_ns_total[static_cast<size_t>(p)]; };
  const auto reason = [&](FinishReason r) {
    return step.finished_by_reason[static_cast<size_t>(r)];
  };
  const auto stage = [&](RequestStage s) {
    return step.deadlines_by_stage[static_cast<size_t>(s)];
  };
  c->busy_ns_total = step.BusyNs();
  c->admit_ns_total = part(StepPart::kAdmit);
  c->schedule_ns_total = part(StepPart::kSchedule);
  c->forward_ns_total = part(StepPart::kForward);
  c->sample_ns_total = part(StepPart::kSample);
  c->commit_ns_total = part(StepPart::kCommit);
  c->deliver_ns_total = part(StepPart::kDeliver);
  c->prompt_tokens_total = step.prompt_tokens_total;
  c->stopped_requests_total = reason(FinishReason::kEndToken) + reason(FinishReason::kStopToken) +
                              reason(FinishReason::kStopString);
  c->length_requests_total = reason(FinishReason::kLength);
  c->rejected_full_requests_total = metrics.rejected.full;
  c->rejected_invalid_requests_total = metrics.rejected.invalid;
  c->rejected_other_requests_total = metrics.rejected.other;
  c->deadline_queue_requests_total = stage(RequestStage::kQueue);
  c->deadline_prefill_requests_total = stage(RequestStage::kPrefill);
  c->deadline_decode_requests_total = stage(RequestStage::kDecode);
  const RequestTimes& times = step.request_ns_total;
  c->request_prefill_ns_total = static_cast<uint64_t>(times.prefill_ns);
  c->request_stall_ns_total = static_cast<uint64_t>(times.stall_ns);
  c->request_decode_ns_total = static_cast<uint64_t>(times.decode_ns);
  c->request_deliver_ns_total = static_cast<uint64_t>(times.deliver_ns);
  c->weight_bytes_read_total = step.weight_bytes_read_total;
  c->kv_bytes_read_total = step.kv_bytes_read_total;
  c->kv_bytes_written_total = step.kv_bytes_written_total;
  c->memory_bandwidth_current = metrics.memory_bandwidth_current;
  c->engine_open_ns = static_cast<uint64_t>(metrics.times.engine_ns);
}

void TranslateCost(const StepCounters& step, llm_metrics_snapshot* c) {
  const auto scaled = [](double value, double scale) {
    return static_cast<uint64_t>(std::min(value * scale, 1e18));
  };
  c->cost_fixed_ns_current = scaled(step.cost.fixed, 1);
  c->cost_decode_row_ns_current = scaled(step.cost.decode_row, 1);
  c->cost_prefill_token_ns_current = scaled(step.cost.prefill_token, 1);
  c->cost_decode_key_ps_current = scaled(step.cost.decode_key, 1e3);
  c->cost_prefill_pair_ps_current = scaled(step.cost.prefill_pair, 1e3);
  c->cost_error_p50_ppm_current = scaled(step.cost_error.p50, 1e6);
  c->cost_error_p95_ppm_current = scaled(step.cost_error.p95, 1e6);
}

void TranslateTargets(const EngineMetrics& metrics, llm_metrics_snapshot* c) {
  const TargetCounters& targets = metrics.step.targets;
  const auto count = [&](Target target, uint64_t* stated, uint64_t* met) {
    *stated = targets.stated[static_cast<size_t>(target)];
    *met = targets.met[static_cast<size_t>(target)];
  };
  count(Target::kFirstToken, &c->first_token_target_requests_total,
        &c->first_token_met_requests_total);
  count(Target::kTokenGap, &c->token_gap_target_requests_total, &c->token_gap_met_requests_total);
  count(Target::kCompletion, &c->completion_target_requests_total,
        &c->completion_met_requests_total);
  c->good_requests_total = targets.good_requests;
  c->good_tokens_total = targets.good_tokens;
  c->rejected_late_requests_total = metrics.rejected.late;
  c->hopeless_requests_total = metrics.step.hopeless_requests_total;
  c->clock_ns_current = metrics.clock_ns_current;
}

void TranslateSpill(const SpillCounters& spill, llm_metrics_snapshot* c) {
  c->spilled_blocks_total = spill.spilled_blocks_total;
  c->returned_blocks_total = spill.returned_blocks_total;
  c->spill_written_bytes_total = spill.written_bytes_total;
  c->spill_read_bytes_total = spill.read_bytes_total;
  c->spill_failed_blocks_total = spill.failed_blocks_total;
  c->spilled_blocks_current = spill.blocks_current;
}

void TranslateGraphs(const GraphCounters& graphs, llm_metrics_snapshot* c) {
  c->graph_steps_total = graphs.launches_total;
  c->graph_failures_total = graphs.failures_total;
}

void TranslateAhead(const AheadCounters& ahead, llm_metrics_snapshot* c) {
  c->ahead_steps_total = ahead.steps_total;
  c->ahead_dropped_total = ahead.dropped_total;
  c->ahead_failures_total = ahead.failures_total;
}

}  // namespace

llm_metrics_snapshot TranslateMetrics(const EngineMetrics& metrics) {
  llm_metrics_snapshot c;
  llm_metrics_snapshot_init(&c);
  const StepCounters& step = metrics.step;
  const SchedulerCounters& scheduler = metrics.scheduler;
  c.healthy = metrics.healthy ? 1 : 0;
  c.steps_total = step.steps_total;
  c.failed_steps_total = step.failed_steps_total;
  c.scheduled_tokens_total = step.scheduled_tokens_total;
  c.computed_tokens_total = step.computed_tokens_total;
  c.cached_tokens_total = scheduler.cached_tokens_total;
  c.queried_tokens_total = scheduler.queried_tokens_total;
  c.generated_tokens_total = step.generated_tokens_total;
  c.recomputed_tokens_total = scheduler.recomputed_tokens_total;
  c.rehit_tokens_total = scheduler.rehit_tokens_total;
  c.preemptions_total = scheduler.preemptions_total;
  c.evicted_blocks_total = scheduler.evicted_blocks_total;
  c.submitted_requests_total = metrics.submitted_requests_total;
  c.finished_requests_total = step.finished_requests_total;
  c.cancelled_requests_total = step.cancelled_requests_total;
  c.deadline_requests_total = step.deadline_requests_total;
  c.rejected_requests_total = metrics.rejected_requests_total;
  c.failed_requests_total = step.failed_requests_total;
  c.queue_ns_total = static_cast<uint64_t>(step.request_ns_total.queue_ns);
  c.ttft_ns_total = step.ttft_ns_total;
  c.ttft_requests_total = step.ttft_requests_total;
  c.step_ns_total = step.step_ns_total;
  c.callback_ns_total = metrics.callback_ns_total;
  c.running_current = static_cast<uint64_t>(scheduler.running_current);
  c.waiting_current = static_cast<uint64_t>(scheduler.waiting_current) + step.paused_current;
  c.total_blocks_current = metrics.total_blocks_current;
  c.free_blocks_current = static_cast<uint64_t>(scheduler.free_blocks_current);
  c.held_blocks_current = static_cast<uint64_t>(scheduler.held_blocks_current);
  c.cached_blocks_current = static_cast<uint64_t>(scheduler.cached_blocks_current);
  c.pinned_blocks_current = static_cast<uint64_t>(scheduler.pinned_blocks_current);
  c.kv_bytes_current = metrics.kv_bytes_current;
  c.memory_bytes_current = metrics.memory_bytes_current;
  TranslateParts(metrics, &c);
  TranslateCost(step, &c);
  TranslateTargets(metrics, &c);
  TranslateSpill(step.spill, &c);
  TranslateGraphs(step.graphs, &c);
  TranslateAhead(step.ahead, &c);
  return c;
}

namespace {

llm_histogram Translate(HistogramId id, const Histogram& histogram) {
  const absl::Span<const uint64_t> edges = HistogramEdges(id);
  llm_histogram c;
  llm_histogram_init(&c);
  c.num_buckets = static_cast<uint32_t>(edges.size()) + 1;
  c.edges = edges.data();
  c.count = histogram.count;
  c.sum = histogram.sum;
  std::copy_n(histogram.buckets.begin(), c.num_buckets, c.buckets);
  return c;
}

}  // namespace

absl::StatusOr<llm_histogram> TranslateHistogram(const EngineMetrics& metrics, uint32_t which) {
  if (which >= kNumHistograms) {
    return absl::InvalidArgumentError(absl::StrCat("which: there is no histogram ", which));
  }
  const auto id = static_cast<HistogramId>(which);
  return Translate(id, metrics.step.histograms.Of(id));
}

absl::StatusOr<llm_histogram> TranslateClassHistogram(const EngineMetrics& metrics,
                                                      uint32_t request_class, uint32_t which) {
  const auto id = static_cast<HistogramId>(which);
  const ClassCounters::Class none;
  const Histogram* histogram = metrics.step.classes.Find(request_class, none).Of(id);
  if (histogram != nullptr) return Translate(id, *histogram);
  return absl::InvalidArgumentError(
      absl::StrCat("which: histogram ", which, " is not kept by request_class"));
}

}  // namespace llm
