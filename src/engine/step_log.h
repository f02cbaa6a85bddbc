// The step ring and the event ring: what the engine did last, one record a step and one a change of
// a request. Bounded, made at open, written without waiting or allocating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/record_ring.h"
#include "src/engine/step_bytes.h"
#include "src/engine/step_records.h"
#include "src/scheduler/scheduler.h"
#include "src/scheduler/step_plan.h"

namespace llm {

// Some 350 KiB each: minutes of steps, and seconds of a full engine's events.
inline constexpr size_t kStepRingRecords = 2048;
inline constexpr size_t kRequestRingRecords = 8192;

class StepLog {
 public:
  explicit StepLog(const ByteModel& bytes);

  // Engine thread: one step's record is filled between Begin and End.
  void Begin(int64_t begin_ns);
  // What the step is to compute, whether or not it then succeeds.
  void AddPlan(const StepPlan& plan);
  void AddPreempted(const StepPlan& plan, int64_t now_ns);
  // The step holds: its admissions and chunks become records. REQUIRES: before Scheduler::Commit.
  void Commit(const StepPlan& plan, int64_t now_ns);
  void Fail(const StepPlan& plan, int32_t status_code, int64_t now_ns);
  // A request that is in no block table now, with `tokens` known ones.
  void AddWaiting(bool has_token, int32_t tokens);
  // Writes the step's record if it had a plan.
  void End(const SchedulerCounters& counters, int64_t forward_ns, int64_t end_ns);

  // Any thread.
  void Add(RecordKind kind, uint64_t id, int64_t tokens, int64_t detail, int64_t time_ns);

  // Of the step that runs.
  StepRecord& step() { return step_; }
  const RecordRing<StepRecord>& steps() const { return steps_; }
  const RecordRing<RequestRecord>& requests() const { return requests_; }

 private:
  void AddChunk(const ScheduledChunk& chunk);

  const ByteModel bytes_;
  StepRecord step_;
  bool has_plan_ = false;
  RecordRing<StepRecord> steps_;
  RecordRing<RequestRecord> requests_;
};

}  // namespace llm
