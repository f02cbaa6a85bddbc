// A runner whose "model" is a hash: keys are hashes stored in paged slots, so that a wrong block,
// slot or copy gives wrong logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/runner/runner.h"
#include "src/scheduler/scheduler.h"

namespace llm {

inline constexpr int32_t kFakeHidden = 8;

class ScriptedRunner : public Runner {
 public:
  ScriptedRunner(const SchedulerOptions& options, int32_t vocab_size,
                 std::shared_ptr<ManualClock> clock);

  absl::StatusOr<StepLogits> Execute(const StepPlan& plan) override;
  size_t block_bytes(int group) const override;
  absl::Status ReadBlock(int group, BlockId block, std::byte* out) const override;
  absl::Status WriteBlock(int group, BlockId block, const std::byte* from) override;

  absl::Status DeviceStatus() const override { return device_status; }
  // With run_ahead: as a device's, though nothing is computed before it is asked for. A plan behind
  // one that looks ahead must be of rows that can have begun then, or of none of them.
  bool runs_ahead() const override { return run_ahead; }
  bool is_ahead() const override { return !ahead_rows_.empty(); }
  AheadCounters ahead() const override { return ahead_counters_; }

  bool run_ahead = false;
  absl::Status device_status;  // not OK: its device is lost
  // Called at the start of each step with its number, from 0; may fail the step, throw, or block.
  std::function<absl::Status(int step, const StepPlan& plan)> before;
  // Likewise at its end, when all keys are written.
  std::function<absl::Status(int step, const StepPlan& plan)> after;
  // Rows of this request come out as NaN.
  uint64_t nan_request = 0;
  int64_t step_ns = 1000;  // what a step takes on the manual clock
  int64_t token_ns = 0;    // and each of its tokens
  // Raises this id's logit by `favour_by`, for tests that need a certain token.
  int32_t favour = -1;
  // When not empty: the k-th generated token of any sequence is script[k], and the end token comes
  // after the last.
  std::vector<int32_t> script;
  int32_t end_id = -1;

  int steps() const { return steps_; }
  // A broken rule of the plan (slot written twice, context not covered); empty when there was none.
  const std::string& error() const { return error_; }

 private:
  uint64_t* Slot(size_t group, const Sequence& sequence, int32_t position);
  void CopyBlocks(const StepPlan& plan);
  // The hash of each position of the chunk.
  std::vector<uint64_t> Compute(const ScheduledChunk& chunk, std::set<const uint64_t*>* written);
  void WriteRow(const ScheduledChunk& chunk, uint64_t hash);
  void WriteHidden(const ScheduledChunk& chunk, uint64_t hash);
  // What a step of decodes reads and writes but for its token.
  struct AheadRow {
    uint64_t arrival_index = 0;
    int32_t begin = 0;
    std::vector<BlockTable> tables;  // [groups]: those that the row reads or writes
    bool operator==(const AheadRow&) const = default;
  };
  AheadRow RowOf(const Sequence& sequence, int32_t begin) const;
  // True: the plan had begun.
  bool TakeAhead(const StepPlan& plan);
  void RunAhead(const StepPlan& plan);

  const SchedulerOptions options_;
  const int32_t vocab_size_;
  const std::shared_ptr<ManualClock> clock_;
  std::vector<std::vector<uint64_t>> slots_;  // [groups][blocks * block_size]
  std::vector<float> logits_;
  std::vector<float> hidden_;
  std::vector<int32_t> argmax_;
  std::vector<float> max_;
  std::vector<float> log_sum_exp_;
  std::vector<AheadRow> ahead_rows_;
  AheadCounters ahead_counters_;
  int steps_ = 0;
  std::string error_;
};

}  // namespace llm
