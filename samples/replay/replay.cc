// Real engines run on threads of their own and are fed when requests are due; simulated ones run
// their steps inside submit.
#include "replay/replay.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>

namespace replay {
namespace {

int64_t NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

uint32_t PolicyOf(const std::string& name) {
  return name == "priority"   ? LLM_POLICY_PRIORITY
         : name == "deadline" ? LLM_POLICY_DEADLINE
                              : LLM_POLICY_FCFS;
}

uint32_t AdmissionOf(const std::string& name) {
  return name == "reserve"  ? LLM_ADMISSION_RESERVE
         : name == "greedy" ? LLM_ADMISSION_GREEDY
                            : LLM_ADMISSION_PREDICT;
}

inlay::Model OpenModel(const Flags& flags, bool simulated) {
  llm_model_options options = tools::ModelOptions(flags.open);
  if (simulated) options.device = LLM_DEVICE_SIM;
  inlay::Model model;
  tools::Check(inlay::Model::Open(flags.open.model, &options, &model));
  return model;
}

int64_t Milliseconds(unsigned ms) { return int64_t{ms} * 1'000'000; }

}  // namespace

Session::Session(const Flags& flags)
    : flags_(flags),
      simulated_(!flags.costs.empty()),
      model_(OpenModel(flags, simulated_)),
      info_(tools::ModelInfo(model_)),
      random_(flags.trace.seed) {
  llm_engine_options options = tools::EngineOptions(flags.open);
  options.kv_tokens = flags.kv_tokens;
  options.max_sequences = flags.max_sequences;
  options.max_queued_requests = flags.max_queued_requests;
  options.policy = PolicyOf(flags.policy);
  options.admission = AdmissionOf(flags.admission);
  options.prefix_cache = flags.share_prefixes ? LLM_ON : LLM_OFF;
  options.refuse_late = flags.keep_late ? LLM_OFF : LLM_ON;
  llm_sim_costs costs;
  if (simulated_) {
    costs = ParseCosts(flags.costs);
    options.sim_costs = &costs;
    options.drive = LLM_DRIVE_MANUAL;
  }
  tools::Check(inlay::Engine::Open(model_, &options, &engine_));
  end_bias_ = {info_.eos_id, 1e6f};
}

bool Session::Submit(const TraceRequest& one, int64_t arrival_ns) {
  prompt_.resize(one.prompt_tokens);
  for (int32_t& id : prompt_)
    id = static_cast<int32_t>(random_.Next() % static_cast<uint64_t>(info_.vocab_size));
  llm_request request;
  llm_request_init(&request);
  request.prompt_ids = prompt_.data();
  request.num_prompt_ids = prompt_.size();
  request.arrival_ns = arrival_ns;
  request.max_new_tokens = one.output_tokens;
  request.ignore_eos = LLM_ON;
  // The end token, which is likelier than anything, may come behind all others.
  if (flags_.hide_lengths && one.output_tokens > 1) {
    request.max_new_tokens = flags_.trace.most_output;
    request.min_new_tokens = one.output_tokens - 1;
    request.ignore_eos = LLM_OFF;
    request.logit_bias = &end_bias_;
    request.num_logit_bias = 1;
    request.logit_bias_size = sizeof(end_bias_);
  }
  request.token_gap_target_ns = Milliseconds(flags_.gap_ms);
  if (!flags_.keep_all) {
    request.first_token_deadline_ns = Milliseconds(flags_.first_token_ms);
    request.completion_deadline_ns = Milliseconds(flags_.completion_ms);
  }
  llm_request_id id = 0;
  const llm_status status = llm_submit(engine_.get(), &request, &id);
  if (status == LLM_RESOURCE_EXHAUSTED || status == LLM_DEADLINE_EXCEEDED) return false;
  tools::Check(status);
  ++open_;
  return true;
}

// A target of 0 is none. A gap may be a quarter longer, as the library's counters have it.
bool Session::IsGood(const llm_event& event) const {
  const llm_request_stats& stats = *event.stats;
  const auto met = [](int64_t ns, unsigned ms) { return ms == 0 || ns <= Milliseconds(ms); };
  return event.status == LLM_OK && met(stats.ttft_ns, flags_.first_token_ms) &&
         met(stats.total_ns, flags_.completion_ms) &&
         met(stats.longest_gap_ns / 5 * 4, flags_.gap_ms);
}

void Session::TakeFinish(const llm_event& event, Result* result) {
  --open_;
  if (event.status != LLM_OK && event.status != LLM_DEADLINE_EXCEEDED)
    tools::Fail("a request ended with " + std::string(llm_status_name(event.status)));
  if (event.stats->ttft_ns >= 0) result->ttft_ns.push_back(event.stats->ttft_ns);
  result->total_ns.push_back(event.stats->total_ns);
  result->good += IsGood(event) ? 1 : 0;
}

void Session::Poll(int64_t timeout_ns, Result* result) {
  llm_event events[256];
  size_t count = 256;
  for (bool first = true; count == 256 || first; first = false) {
    tools::Check(
        llm_poll(engine_.queue(), events, sizeof events[0], 256, first ? timeout_ns : 0, &count));
    for (size_t i = 0; i < count; ++i)
      if (events[i].type == LLM_EVENT_FINISHED) TakeFinish(events[i], result);
  }
  if (to_arrive_ != 0) SayProgress();
  if (!simulated_ || !flags_.timeline.empty()) ReadSteps();
  if (Clock::now() < next_costs_ || simulated_) return;
  next_costs_ = Clock::now() + std::chrono::milliseconds(100);
  llm_metrics_snapshot metrics;
  tools::Check(engine_.GetMetrics(&metrics));
  costs_.Add(metrics);
}

// A real trace takes minutes.
void Session::SayProgress() {
  if (Clock::now() < next_word_) return;
  next_word_ = Clock::now() + std::chrono::seconds(10);
  std::fprintf(stderr, "%zu of %zu requests came, %llu are open\n", arrived_, to_arrive_,
               static_cast<unsigned long long>(open_));
}

void Session::ReadSteps() {
  llm_step_record records[256];
  size_t count = 256;
  while (count == 256) {
    tools::Check(
        llm_step_records_read(engine_.get(), &cursor_, records, sizeof records[0], 256, &count));
    std::copy_if(records, records + count, std::back_inserter(steps_),
                 [](const llm_step_record& step) { return step.failed == 0; });
  }
}

void Session::WriteTimeline(int64_t origin_ns) const {
  std::FILE* file = std::fopen(flags_.timeline.c_str(), "w");
  if (file == nullptr) tools::Fail(flags_.timeline + ": cannot be written");
  std::fprintf(file, "time_s,step_s,decodes,prefill_tokens,waiting,held,total,preemptions\n");
  for (const llm_step_record& step : steps_) {
    std::fprintf(file, "%.6f,%.6f,%u,%u,%u,%u,%u,%u\n",
                 static_cast<double>(step.end_ns - origin_ns) * 1e-9,
                 static_cast<double>(step.end_ns - step.begin_ns) * 1e-9, step.decode_sequences,
                 step.prefill_tokens,
                 step.waiting_prefill_sequences + step.waiting_decode_sequences, step.held_blocks,
                 step.held_blocks + step.free_blocks + step.cached_blocks, step.preemptions);
  }
  std::fclose(file);
}

// The engine learns what steps cost: prompts of several lengths, one after the other.
void Session::Warm() {
  Result unused;
  for (const uint32_t tokens : {8u, 32u, 64u, 96u, 128u, 192u, 256u}) {
    Submit({0, tokens, 8}, 0);
    while (open_ > 0) {
      if (simulated_) tools::Check(llm_engine_step(engine_.get(), nullptr));
      Poll(simulated_ ? 0 : -1, &unused);
    }
  }
  steps_.clear();
  costs_ = CostLog();
}

Result Session::Run(const std::vector<TraceRequest>& trace) {
  Warm();
  Result result;
  llm_metrics_snapshot before;
  tools::Check(engine_.GetMetrics(&before));
  const int64_t origin_ns = static_cast<int64_t>(before.clock_ns_current);
  const Clock::time_point start = Clock::now();
  next_word_ = start + std::chrono::seconds(10);
  to_arrive_ = trace.size();
  for (const TraceRequest& one : trace) {
    ++arrived_;
    if (simulated_) {
      if (!Submit(one, origin_ns + one.arrival_ns)) ++result.rejected;
      Poll(0, &result);
      continue;
    }
    for (int64_t left_ns = 1; left_ns > 0;) {
      left_ns = one.arrival_ns - NanosecondsSince(start);
      if (left_ns > 0) Poll(left_ns, &result);
    }
    if (!Submit(one, 0)) ++result.rejected;
  }
  while (open_ > 0) {
    if (simulated_) tools::Check(llm_engine_step(engine_.get(), nullptr));
    Poll(simulated_ ? 0 : -1, &result);
  }
  tools::Check(engine_.GetMetrics(&result.metrics));
  result.wall_seconds = static_cast<double>(NanosecondsSince(start)) * 1e-9;
  result.seconds =
      static_cast<double>(result.metrics.clock_ns_current - before.clock_ns_current) * 1e-9;
  costs_.Add(result.metrics);
  result.costs = simulated_ ? flags_.costs : costs_.Text(steps_);
  llm_metrics_snapshot& total = result.metrics;
  total.good_requests_total -= before.good_requests_total;
  total.generated_tokens_total -= before.generated_tokens_total;
  total.prompt_tokens_total -= before.prompt_tokens_total;
  total.steps_total -= before.steps_total;
  total.preemptions_total -= before.preemptions_total;
  total.finished_requests_total -= before.finished_requests_total;
  std::sort(result.ttft_ns.begin(), result.ttft_ns.end());
  std::sort(result.total_ns.begin(), result.total_ns.end());
  if (!flags_.timeline.empty()) WriteTimeline(origin_ns);
  return result;
}

}  // namespace replay
