// Executes step plans. The engine knows only this interface, so its tests run with a scripted one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/row_draw.h"
#include "src/runner/ahead_counters.h"
#include "src/runner/graph_counters.h"
#include "src/scheduler/step_plan.h"

namespace llm {

class Clock;
class TraceRecorder;

// Logits and hidden states of the rows that the plan asked for, chunk by chunk; valid until the
// next Execute.
struct StepLogits {
  // [rows, vocab_size], of which rows of chunks that do not need theirs (NeedsLogits), or that a
  // token was drawn from, may hold anything; null: argmax is the token as it is.
  const float* logits = nullptr;
  absl::Span<const int32_t> argmax;     // [rows]; -1: the row is not finite
  absl::Span<const float> max;          // [rows]
  absl::Span<const float> log_sum_exp;  // [rows]
  int64_t rows = 0;
  int64_t vocab_size = 0;
  // Tokens that the device has drawn itself; draw_of_row is empty where it cannot.
  absl::Span<const int32_t> draw_of_row;    // [rows]: the row's draw; -1: the host draws
  const TokenLogprob* drawn = nullptr;      // [draws]; an id below 0 is a DrawFailure
  const TokenLogprob* drawn_top = nullptr;  // [draws, max_drawn_top], of each what it asks for
  int64_t max_drawn_top = 0;
  const float* hidden = nullptr;  // [hidden_rows, hidden_size], after the final norm
  int64_t hidden_rows = 0;
  int64_t hidden_size = 0;
  // What the device took for a step that it began before the call; kNotMeasured: it cannot say, as
  // behind one that was begun for nothing. 0: it began with the call.
  int64_t device_ns = 0;
  static constexpr int64_t kNotMeasured = -1;
};

class Runner {
 public:
  virtual ~Runner() = default;
  // Copies blocks, computes the forward pass, writes keys and values. On failure nothing that a
  // later step reads has changed, except the contents of slots that the plan itself owns. REQUIRES:
  // plan.num_tokens <= the configured step tokens.
  virtual absl::StatusOr<StepLogits> Execute(const StepPlan& plan) = 0;
  // Whether plans that look ahead are of use here.
  virtual bool runs_ahead() const { return false; }
  // Whether the step behind the last one has begun already, as one of decodes: plans that want
  // anything else wait until it has ended, for nothing. Only plans that look ahead lead to this.
  virtual bool is_ahead() const { return false; }
  virtual AheadCounters ahead() const { return {}; }
  // The contents of a block in all layers of its group: so many bytes, 0: they are not shown.
  virtual size_t block_bytes(int /*group*/) const { return 0; }
  // Between steps. REQUIRES: block_bytes is not 0; to write, that nothing reads the block.
  // INTERNAL, what was read or written being unknown, where the device fails.
  virtual absl::Status ReadBlock(int /*group*/, BlockId /*block*/, std::byte* /*out*/) const {
    return absl::OkStatus();
  }
  virtual absl::Status WriteBlock(int /*group*/, BlockId /*block*/, const std::byte* /*from*/) {
    return absl::OkStatus();
  }
  // Not OK: the device is lost, and no later call can succeed.
  virtual absl::Status DeviceStatus() const { return absl::OkStatus(); }
  virtual GraphCounters graphs() const { return {}; }
  // What there is to say in the log since the last call.
  virtual std::vector<std::string> TakeNotices() { return {}; }
  // Before the first Execute: the ops of a step go to `trace` while it is on.
  virtual void SetTrace(TraceRecorder* /*trace*/, const Clock* /*clock*/) {}
};

}  // namespace llm
