// Replays a trace on an engine: in real time, or on the virtual clock of a simulated one.
#pragma once

#include <chrono>
#include <cstdint>
#include <inlay/llm.hpp>
#include <string>
#include <vector>

#include "common/open.h"
#include "replay/costs.h"
#include "replay/trace.h"

namespace replay {

using Clock = std::chrono::steady_clock;

struct Flags {
  tools::OpenFlags open;
  TraceOptions trace;
  std::string costs;  // "fixed_ns,decode_row_ns,prefill_token_ns,decode_key_ps,prefill_pair_ps"
  std::string policy = "fcfs", admission = "predict";
  uint64_t kv_tokens = 0;
  unsigned max_sequences = 0, max_queued_requests = 0;
  unsigned first_token_ms = 0, gap_ms = 0, completion_ms = 0;
  bool keep_late = false;  // no request is refused for its deadlines
  bool keep_all = false;   // nor does the engine know of them: only the replay counts who met them
  bool hide_lengths = false;  // the engine does not know how long an answer will be
  bool share_prefixes = false;
  std::string timeline;  // CSV, a line a step
};

struct Result {
  std::vector<int64_t> ttft_ns;  // of requests that got a token, sorted
  std::vector<int64_t> total_ns;
  uint64_t rejected = 0;
  double seconds = 0;       // first arrival to last end, on the engine's clock
  double wall_seconds = 0;  // that the replay took
  // Ended by themselves with first token, average gap and completion in time, as stats tell.
  uint64_t good = 0;
  llm_metrics_snapshot metrics = {};
  std::string costs;  // what steps cost
};

// The model and the engine that the flags ask for.
class Session {
 public:
  explicit Session(const Flags& flags);
  Result Run(const std::vector<TraceRequest>& trace);

 private:
  void Warm();
  // False: refused.
  bool Submit(const TraceRequest& one, int64_t arrival_ns);
  void Poll(int64_t timeout_ns, Result* result);
  void TakeFinish(const llm_event& event, Result* result);
  bool IsGood(const llm_event& event) const;
  void SayProgress();
  void ReadSteps();
  void WriteTimeline(int64_t origin_ns) const;

  const Flags& flags_;
  const bool simulated_;
  inlay::Model model_;
  inlay::Engine engine_;
  llm_model_info info_;
  Random random_;
  uint64_t open_ = 0;
  size_t arrived_ = 0, to_arrive_ = 0;
  Clock::time_point next_word_;
  uint64_t cursor_ = 0;  // of step records
  std::vector<int32_t> prompt_;
  std::vector<llm_step_record> steps_;
  llm_logit_bias end_bias_ = {};
  CostLog costs_;
  Clock::time_point next_costs_;
};

}  // namespace replay
