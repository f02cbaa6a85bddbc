// A chunk of one token behind the prompt is a decode, any other a prefill, recomputation included.
#include "src/engine/step_log.h"

namespace llm {
namespace {

bool IsDecode(const ScheduledChunk& chunk) {
  return chunk.length == 1 && chunk.begin >= chunk.sequence->num_prompt_tokens();
}

}  // namespace

StepLog::StepLog(const ByteModel& bytes)
    : bytes_(bytes), steps_(kStepRingRecords), requests_(kRequestRingRecords) {}

void StepLog::Begin(int64_t begin_ns) {
  step_ = StepRecord();
  step_.begin_ns = begin_ns;
  has_plan_ = false;
}

void StepLog::AddChunk(const ScheduledChunk& chunk) {
  const uint64_t length = static_cast<uint64_t>(chunk.length);
  const uint64_t context = static_cast<uint64_t>(chunk.begin) + length;
  if (IsDecode(chunk)) {
    ++step_.decode_sequences;
    step_.decode_context_tokens += context;
    step_.decode_context_tokens_squared += context * context;
    return;
  }
  ++step_.prefill_sequences;
  step_.prefill_tokens += static_cast<uint32_t>(chunk.length);
  step_.prefill_tokens_squared += length * length;
  step_.prefill_context_tokens += context;
}

void StepLog::AddPlan(const StepPlan& plan) {
  has_plan_ = true;
  for (const ScheduledChunk& chunk : plan.chunks) AddChunk(chunk);
  const StepBytes bytes = PredictBytes(bytes_, plan);
  step_.weight_bytes_read = bytes.weights_read;
  step_.kv_bytes_read = bytes.kv_read;
  step_.kv_bytes_written = bytes.kv_written;
}

void StepLog::AddPreempted(const StepPlan& plan, int64_t now_ns) {
  step_.preemptions += static_cast<uint32_t>(plan.preempted.size());
  for (const StepPlan::Preempted& victim : plan.preempted) {
    Add(RecordKind::kPreempted, victim.sequence->request.id, victim.computed_tokens,
        victim.retained_tokens, now_ns);
  }
}

void StepLog::Commit(const StepPlan& plan, int64_t now_ns) {
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const ScheduledChunk& chunk = plan.chunks[i];
    const Sequence& sequence = *chunk.sequence;
    const uint64_t id = sequence.request.id;
    if (plan.undo[i].admitted) {
      const bool first = sequence.max_computed_tokens == 0;
      Add(first ? RecordKind::kAdmitted : RecordKind::kResumed, id, sequence.num_tokens(), 0,
          first ? sequence.stats.first_scheduled_ns : step_.begin_ns);
      if (chunk.begin > 0) Add(RecordKind::kCached, id, chunk.begin, 0, step_.begin_ns);
    }
    if (!IsDecode(chunk)) Add(RecordKind::kPrefillChunk, id, chunk.length, chunk.begin, now_ns);
  }
}

void StepLog::Fail(const StepPlan& plan, int32_t status_code, int64_t now_ns) {
  has_plan_ = true;  // a step that could not even be planned has its record too
  step_.failed = 1;
  Add(RecordKind::kStepFailed, 0, plan.num_tokens, status_code, now_ns);
}

void StepLog::AddWaiting(bool has_token, int32_t tokens) {
  const uint64_t known = static_cast<uint64_t>(tokens);
  if (has_token) {
    ++step_.waiting_decode_sequences;
    step_.waiting_decode_tokens += known;
  } else {
    ++step_.waiting_prefill_sequences;
    step_.waiting_prefill_tokens += known;
  }
}

void StepLog::End(const SchedulerCounters& counters, int64_t forward_ns, int64_t end_ns) {
  if (!has_plan_) return;
  has_plan_ = false;
  step_.end_ns = end_ns;
  step_.forward_ns = forward_ns;
  step_.host_ns = end_ns - step_.begin_ns - forward_ns;
  step_.free_blocks = static_cast<uint32_t>(counters.free_blocks_current);
  step_.held_blocks = static_cast<uint32_t>(counters.held_blocks_current);
  step_.cached_blocks = static_cast<uint32_t>(counters.cached_blocks_current);
  steps_.Write(step_);
}

void StepLog::Add(RecordKind kind, uint64_t id, int64_t tokens, int64_t detail, int64_t time_ns) {
  RequestRecord record;
  record.time_ns = time_ns;
  record.id = id;
  record.kind = kind;
  record.tokens = static_cast<uint32_t>(tokens);
  record.detail = detail;
  requests_.Write(record);
}

}  // namespace llm
