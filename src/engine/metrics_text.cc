// One row a metric, so that a missing one shows.
#include "src/engine/metrics_text.h"

#include "absl/strings/str_cat.h"
#include "src/base/prometheus_text.h"

namespace llm {
namespace {

constexpr MetricUnit kSeconds = MetricUnit::kNanosecondsAsSeconds;

uint64_t FinishedBy(const StepCounters& step, FinishReason reason) {
  return step.finished_by_reason[static_cast<size_t>(reason)];
}

void WriteGauges(const EngineMetrics& metrics, const MetricsLabels& labels, PrometheusText* out) {
  const SchedulerCounters& scheduler = metrics.scheduler;
  out->Gauge("vllm:num_requests_running", "Requests that hold KV blocks.",
             static_cast<uint64_t>(scheduler.running_current));
  out->Gauge("vllm:num_requests_waiting", "Requests that wait for their first or next step.",
             static_cast<uint64_t>(scheduler.waiting_current) + metrics.step.paused_current);
  out->Family("vllm:kv_cache_usage_perc", "gauge", "KV blocks held by requests; 1 is all of them.");
  out->SampleRatio(static_cast<uint64_t>(scheduler.held_blocks_current),
                   metrics.total_blocks_current);
  out->Family("vllm:cache_config_info", "gauge", "Shape of the KV cache, in the labels.");
  out->Sample(
      absl::StrCat(
          PrometheusText::Label("block_size", absl::StrCat(labels.block_size)), ",",
          PrometheusText::Label("num_gpu_blocks", absl::StrCat(metrics.total_blocks_current))),
      1);
  // Nothing else is told of adapters, which this version does not load; routers look for the name.
  out->Family("vllm:lora_requests_info", "gauge", "Adapters, in the labels: none.");
  out->Sample(absl::StrCat(PrometheusText::Label("max_lora", "0"), ",",
                           PrometheusText::Label("waiting_lora_adapters", ""), ",",
                           PrometheusText::Label("running_lora_adapters", "")),
              0);
  out->Gauge("inlay:healthy", "0 after an internal fault.", metrics.healthy ? 1 : 0);
  out->Family("inlay:blocks", "gauge", "KV blocks by state.");
  out->Sample(R"(state="free")", static_cast<uint64_t>(scheduler.free_blocks_current));
  out->Sample(R"(state="held")", static_cast<uint64_t>(scheduler.held_blocks_current));
  out->Sample(R"(state="cached")", static_cast<uint64_t>(scheduler.cached_blocks_current));
  out->Gauge("inlay:pinned_blocks", "KV blocks of pinned prefixes, part of the held ones.",
             static_cast<uint64_t>(scheduler.pinned_blocks_current));
  out->Gauge("inlay:kv_bytes", "Memory of the KV cache.", metrics.kv_bytes_current);
  out->Gauge("inlay:memory_bytes", "Memory counted by the engine: KV, workspace, event buffers.",
             metrics.memory_bytes_current);
}

void WriteTokens(const EngineMetrics& metrics, PrometheusText* out) {
  const StepCounters& step = metrics.step;
  const SchedulerCounters& scheduler = metrics.scheduler;
  out->Counter("vllm:prompt_tokens_total", "Prompt tokens of requests that got a token.",
               step.prompt_tokens_total);
  out->Counter("vllm:prompt_tokens_cached_total", "Prompt tokens that the prefix cache had.",
               scheduler.cached_tokens_total);
  out->Counter("vllm:generation_tokens_total", "Tokens generated.", step.generated_tokens_total);
  out->Counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
               scheduler.queried_tokens_total);
  out->Counter("vllm:prefix_cache_hits_total", "Prompt tokens found there.",
               scheduler.cached_tokens_total);
  out->Counter("inlay:scheduled_tokens_total", "Tokens of all steps.", step.scheduled_tokens_total);
  out->Counter("inlay:computed_tokens_total", "Prompt tokens computed, recomputation included.",
               step.computed_tokens_total);
  out->Counter("inlay:recomputed_tokens_total", "Tokens computed again after preemptions.",
               scheduler.recomputed_tokens_total);
  out->Counter("inlay:rehit_tokens_total",
               "Tokens that preempted requests found in the cache again.",
               scheduler.rehit_tokens_total);
  out->Counter("vllm:num_preemptions_total", "Preemptions.", scheduler.preemptions_total);
  out->Counter("inlay:evicted_blocks_total", "Cached blocks dropped for new ones.",
               scheduler.evicted_blocks_total);
}

void WriteRequests(const EngineMetrics& metrics, PrometheusText* out) {
  const StepCounters& step = metrics.step;
  out->Family("vllm:request_success_total", "counter", "Requests that ended, by reason.");
  out->Sample(R"(finished_reason="stop")", FinishedBy(step, FinishReason::kEndToken) +
                                               FinishedBy(step, FinishReason::kStopToken) +
                                               FinishedBy(step, FinishReason::kStopString));
  out->Sample(R"(finished_reason="length")", FinishedBy(step, FinishReason::kLength));
  out->Sample(R"(finished_reason="abort")", FinishedBy(step, FinishReason::kCancelled) +
                                                FinishedBy(step, FinishReason::kDeadline));
  out->Sample(R"(finished_reason="error")", FinishedBy(step, FinishReason::kError));
  out->Counter("inlay:submitted_requests_total", "Requests taken in.",
               metrics.submitted_requests_total);
  out->Counter("inlay:cancelled_requests_total", "Requests cancelled.",
               step.cancelled_requests_total);
  out->Family("inlay:rejected_requests_total", "counter", "Requests refused at submit, by reason.");
  out->Sample(R"(reason="full")", metrics.rejected.full);
  out->Sample(R"(reason="invalid")", metrics.rejected.invalid);
  out->Sample(R"(reason="other")", metrics.rejected.other);
  out->Family("inlay:deadline_requests_total", "counter",
              "Requests whose deadline passed, by the stage they were in.");
  for (size_t i = 0; i < kNumRequestStages; ++i) {
    out->Sample(PrometheusText::Label("stage", kRequestStageNames[i]), step.deadlines_by_stage[i]);
  }
}

void WriteTargets(const EngineMetrics& metrics, PrometheusText* out) {
  const TargetCounters& targets = metrics.step.targets;
  const auto by_target = [&](const std::array<uint64_t, kNumTargets>& counts) {
    for (size_t i = 0; i < kNumTargets; ++i) {
      out->Sample(PrometheusText::Label("target", kTargetNames[i]), counts[i]);
    }
  };
  out->Family("inlay:target_requests_total", "counter",
              "Requests that ended, not by a cancel, and had stated a target.");
  by_target(targets.stated);
  out->Family("inlay:target_met_requests_total", "counter", "Those that met it.");
  by_target(targets.met);
  out->Counter("inlay:good_requests_total",
               "Requests that ended by themselves and met every target that they had stated.",
               targets.good_requests);
  out->Counter("inlay:good_tokens_total", "Tokens generated by those.", targets.good_tokens);
  out->Counter("inlay:rejected_late_requests_total",
               "Requests refused since their first token would have come too late.",
               metrics.rejected.late);
  out->Counter("inlay:hopeless_requests_total",
               "Requests that ended in the queue before a deadline that they could not meet.",
               metrics.step.hopeless_requests_total);
}

void WriteBuckets(HistogramId id, const Histogram& histogram, const std::string& labels,
                  MetricUnit unit, PrometheusText* out) {
  const absl::Span<const uint64_t> edges = HistogramEdges(id);
  out->SampleHistogram(labels, edges, absl::MakeSpan(histogram.buckets).first(edges.size() + 1),
                       histogram.sum, unit);
}

void WriteClasses(const StepCounters& step, PrometheusText* out) {
  using Class = ClassCounters::Class;
  const auto label = [](const Class& one) {
    return PrometheusText::Label("request_class", absl::StrCat(one.id));
  };
  const auto by_class = [&](const char* name, const char* help, uint64_t Class::*count) {
    out->Family(name, "counter", help);
    for (const Class& one : step.classes.classes()) out->Sample(label(one), one.*count);
  };
  by_class("inlay:class_requests_total", "Requests that ended, by request_class.",
           &Class::finished_requests);
  by_class("inlay:class_good_requests_total", "Of these, the good ones.", &Class::good_requests);
  by_class("inlay:class_generated_tokens_total", "Tokens generated for them.",
           &Class::generated_tokens);
  const auto histogram = [&](HistogramId id, const char* name, const char* help) {
    out->Family(name, "histogram", help);
    for (const Class& one : step.classes.classes()) {
      WriteBuckets(id, *one.Of(id), label(one), kSeconds, out);
    }
  };
  histogram(HistogramId::kTtft, "inlay:class_time_to_first_token_seconds",
            "From submit to the first token, by request_class.");
  histogram(HistogramId::kTokenGap, "inlay:class_inter_token_latency_seconds",
            "Between two tokens of a request, by request_class.");
  histogram(HistogramId::kCompletionTime, "inlay:class_e2e_request_latency_seconds",
            "From submit to the end, by request_class.");
}

void WriteSteps(const EngineMetrics& metrics, PrometheusText* out) {
  const StepCounters& step = metrics.step;
  out->Counter("inlay:steps_total", "Steps.", step.steps_total);
  out->Counter("inlay:failed_steps_total", "Steps that failed and were rolled back.",
               step.failed_steps_total);
  out->Counter("inlay:busy_seconds_total", "Time at work, from admission to delivery.",
               step.BusyNs(), kSeconds);
  out->Family("inlay:step_part_seconds_total", "counter", "The same by part of the step.");
  for (size_t i = 0; i < kNumStepParts; ++i) {
    out->Sample(PrometheusText::Label("part", kStepPartNames[i]), step.part_ns_total[i], kSeconds);
  }
  out->Counter("inlay:callback_seconds_total", "Time inside the host's callbacks.",
               metrics.callback_ns_total, kSeconds);
}

// In time that the model ran, all of its predicted bytes over those that memory could have given.
void WriteBandwidthShare(const EngineMetrics& metrics, PrometheusText* out) {
  const StepCounters& step = metrics.step;
  const uint64_t moved =
      step.weight_bytes_read_total + step.kv_bytes_read_total + step.kv_bytes_written_total;
  const double possible =
      static_cast<double>(step.part_ns_total[static_cast<size_t>(StepPart::kForward)]) * 1e-9 *
      static_cast<double>(metrics.memory_bandwidth_current);
  out->Family("inlay:bandwidth_share", "gauge",
              "Predicted bytes over forward time and memory bandwidth; 0 where that is unknown.");
  out->SampleRatio(moved, possible < 1e18 ? static_cast<uint64_t>(possible) : 0);
}

void WriteBytes(const EngineMetrics& metrics, PrometheusText* out) {
  const StepCounters& step = metrics.step;
  out->Counter("vllm:estimated_read_bytes_per_gpu_total",
               "Bytes read by all steps, by arithmetic: weights, keys and values.",
               step.weight_bytes_read_total + step.kv_bytes_read_total);
  out->Counter("vllm:estimated_write_bytes_per_gpu_total",
               "Bytes of keys and values written by all steps, by arithmetic.",
               step.kv_bytes_written_total);
  out->Family("inlay:moved_bytes_total", "counter", "The same by what is moved.");
  out->Sample(R"(kind="weights_read")", step.weight_bytes_read_total);
  out->Sample(R"(kind="kv_read")", step.kv_bytes_read_total);
  out->Sample(R"(kind="kv_written")", step.kv_bytes_written_total);
  out->Gauge("inlay:memory_bandwidth_bytes_per_second",
             "At which the engine's threads read weights, measured at open; 0: not measured.",
             metrics.memory_bandwidth_current);
  WriteBandwidthShare(metrics, out);
}

void WriteCost(const StepCounters& step, PrometheusText* out) {
  out->Family("inlay:step_cost_seconds", "gauge",
              "What a step is predicted to take: the sum of the terms, each times its number.");
  const auto term = [out](const char* name, double ns) {
    out->SampleReal(PrometheusText::Label("term", name), ns * 1e-9);
  };
  term("fixed", step.cost.fixed);
  term("decode_row", step.cost.decode_row);
  term("prefill_token", step.cost.prefill_token);
  term("decode_key", step.cost.decode_key);
  term("prefill_pair", step.cost.prefill_pair);
  out->Family("inlay:step_cost_error_ratio", "gauge",
              "Of abs(predicted - taken) / taken over the last 128 steps.");
  out->SampleReal(R"(quantile="0.5")", step.cost_error.p50);
  out->SampleReal(R"(quantile="0.95")", step.cost_error.p95);
}

void WriteSpill(const SpillCounters& spill, PrometheusText* out) {
  out->Counter("inlay:spilled_blocks_total", "Evicted blocks written to the second tier.",
               spill.spilled_blocks_total);
  out->Counter("inlay:returned_blocks_total", "Blocks read back from it.",
               spill.returned_blocks_total);
  out->Counter("inlay:spill_written_bytes_total", "Bytes written to it.",
               spill.written_bytes_total);
  out->Counter("inlay:spill_read_bytes_total", "Bytes read from it.", spill.read_bytes_total);
  out->Counter("inlay:spill_failed_blocks_total", "Blocks of it that were damaged or unreadable.",
               spill.failed_blocks_total);
  out->Gauge("inlay:spilled_blocks", "Blocks that it holds.", spill.blocks_current);
}

void WriteGraphs(const GraphCounters& graphs, PrometheusText* out) {
  out->Counter("inlay:graph_steps_total", "Steps launched on a device as one graph.",
               graphs.launches_total);
  out->Counter("inlay:graph_failures_total",
               "Graphs that could not be made or launched; the next steps are launched op by op.",
               graphs.failures_total);
}

void WriteAhead(const AheadCounters& ahead, PrometheusText* out) {
  out->Counter("inlay:ahead_steps_total",
               "Steps that a device had begun before the tokens of the step before were looked at.",
               ahead.steps_total);
  out->Counter("inlay:ahead_dropped_total", "Steps begun so that then were not wanted.",
               ahead.dropped_total);
  out->Counter("inlay:ahead_failures_total",
               "Steps that could not be begun so, and were done when they were asked for.",
               ahead.failures_total);
}

void WriteTimes(const EngineMetrics& metrics, PrometheusText* out) {
  const auto sample = [&](const char* label, const char* value, int64_t ns) {
    out->Sample(PrometheusText::Label(label, value), static_cast<uint64_t>(ns), kSeconds);
  };
  const RequestTimes& times = metrics.step.request_ns_total;
  out->Family("inlay:request_part_seconds_total", "counter",
              "Time of the requests that ended, by where it went.");
  sample("part", "queue", times.queue_ns);
  sample("part", "prefill", times.prefill_ns);
  sample("part", "stall", times.stall_ns);
  sample("part", "decode", times.decode_ns);
  sample("part", "deliver", times.deliver_ns);
  const OpenTimes& open = metrics.times;
  out->Family("inlay:open_seconds", "gauge",
              "What opening took. header, tokenizer, read, repack and check are stages of model; "
              "read, repack and check are summed over threads.");
  sample("stage", "model", open.model_ns);
  sample("stage", "header", open.header_ns);
  sample("stage", "tokenizer", open.tokenizer_ns);
  sample("stage", "read", open.read_ns);
  sample("stage", "repack", open.repack_ns);
  sample("stage", "check", open.check_ns);
  sample("stage", "engine", open.engine_ns);
}

void WriteHistogram(const EngineMetrics& metrics, HistogramId id, const char* name, MetricUnit unit,
                    const char* help, PrometheusText* out) {
  out->Family(name, "histogram", help);
  WriteBuckets(id, metrics.step.histograms.Of(id), "", unit, out);
}

void WriteHistograms(const EngineMetrics& metrics, PrometheusText* out) {
  const auto tokens = [&](HistogramId id, const char* name, const char* help) {
    WriteHistogram(metrics, id, name, MetricUnit::kNumber, help, out);
  };
  const auto seconds = [&](HistogramId id, const char* name, const char* help) {
    WriteHistogram(metrics, id, name, kSeconds, help, out);
  };
  tokens(HistogramId::kStepTokens, "vllm:iteration_tokens_total", "Tokens of a step.");
  tokens(HistogramId::kStepSequences, "inlay:step_sequences", "Requests in a step.");
  tokens(HistogramId::kPromptTokens, "vllm:request_prompt_tokens", "Prompt tokens of a request.");
  tokens(HistogramId::kGeneratedTokens, "vllm:request_generation_tokens",
         "Tokens generated for a request.");
  tokens(HistogramId::kRetainedTokens, "inlay:retained_tokens",
         "Computed tokens that a request left in the prefix cache when it gave up its blocks.");
  tokens(HistogramId::kVictimTokens, "inlay:preemption_victim_progress_tokens",
         "Computed tokens of a preempted request.");
  seconds(HistogramId::kQueueTime, "vllm:request_queue_time_seconds",
          "From submit to the first step.");
  seconds(HistogramId::kTtft, "vllm:time_to_first_token_seconds",
          "From submit to the first token.");
  seconds(HistogramId::kTokenGap, "vllm:inter_token_latency_seconds",
          "Between two tokens of a request.");
  seconds(HistogramId::kCompletionTime, "vllm:e2e_request_latency_seconds",
          "From submit to the end.");
  seconds(HistogramId::kPrefillTime, "vllm:request_prefill_time_seconds",
          "From the first step to the first token.");
  seconds(HistogramId::kDecodeTime, "vllm:request_decode_time_seconds",
          "From the first token to the end.");
}

}  // namespace

std::string MetricsText(const EngineMetrics& metrics, const MetricsLabels& labels) {
  PrometheusText out(absl::StrCat(PrometheusText::Label("model_name", labels.model_name), ",",
                                  PrometheusText::Label("engine", "0")));
  WriteGauges(metrics, labels, &out);
  WriteTokens(metrics, &out);
  WriteRequests(metrics, &out);
  WriteTargets(metrics, &out);
  WriteClasses(metrics.step, &out);
  WriteSteps(metrics, &out);
  WriteBytes(metrics, &out);
  WriteCost(metrics.step, &out);
  WriteSpill(metrics.step.spill, &out);
  WriteGraphs(metrics.step.graphs, &out);
  WriteAhead(metrics.step.ahead, &out);
  WriteTimes(metrics, &out);
  WriteHistograms(metrics, &out);
  return out.text();
}

}  // namespace llm
