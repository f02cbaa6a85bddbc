// What the engine thread puts into a trace: steps with their parts, and requests with their stages.
#include "src/engine/step_loop.h"

namespace llm {
namespace {

constexpr char kRole[] = "engine";

}  // namespace

void StepLoop::TraceStep() {
  const absl::Span<const StepLap> laps = laps_.laps();
  if (!trace_->on() || laps.empty()) return;
  std::array<TraceSpan, 1 + StepLaps::kMaxLaps> spans;
  spans[0].name = "step";
  spans[0].role = kRole;
  spans[0].begin_ns = laps.front().begin_ns;
  spans[0].end_ns = laps.back().end_ns;
  spans[0].args[0] = {"tokens", last_step_tokens_};
  spans[0].args[1] = {"requests", static_cast<int64_t>(last_step_sequences_)};
  for (size_t i = 0; i < laps.size(); ++i) {
    TraceSpan& span = spans[i + 1];
    span.name = kStepPartNames[static_cast<size_t>(laps[i].part)];
    span.role = kRole;
    span.begin_ns = laps[i].begin_ns;
    span.end_ns = laps[i].end_ns;
  }
  trace_->Add(absl::MakeConstSpan(spans).first(laps.size() + 1));
}

// Also on the way into an unhealthy engine: allocates nothing.
void StepLoop::TraceRequest(const ActiveRequest& request) {
  if (!trace_->on()) return;
  const SequenceStats& stats = request.stats;
  std::array<TraceSpan, 1 + kNumRequestStages> spans;
  size_t count = 0;
  const auto add = [&](const char* name, int64_t begin_ns, int64_t next_ns) {
    TraceSpan& span = spans[count++];
    span.name = name;
    span.role = kRole;
    span.id = request.request.id + (uint64_t{request.outbox->choice} << 40);  // a track a choice
    span.begin_ns = begin_ns;
    span.end_ns = next_ns == 0 ? request.end_ns : next_ns;
  };
  add("request", request.request.arrival_ns, 0);
  spans[0].args[0] = {"prompt_tokens", request.num_prompt_tokens()};
  spans[0].args[1] = {"generated_tokens", request.num_generated_tokens()};
  if (request.request.trace_id != 0) {
    spans[0].args[2] = {"trace_id", static_cast<int64_t>(request.request.trace_id)};
  }
  add("queue", request.request.arrival_ns, stats.first_scheduled_ns);
  if (stats.first_scheduled_ns != 0) {
    add("prefill", stats.first_scheduled_ns, stats.first_token_ns);
  }
  if (stats.first_token_ns != 0) add("decode", stats.first_token_ns, 0);
  trace_->Add(absl::MakeConstSpan(spans).first(count));
}

}  // namespace llm
