// What steps cost on a real engine, as it told while it ran.
#pragma once

#include <inlay/llm.h>

#include <string>
#include <vector>

namespace replay {

// A fit holds for the last steps alone, and another program may have taken the machine during
// those: of all fits of a run, that one stands for it whose prediction of an average step is the
// median.
class CostLog {
 public:
  void Add(const llm_metrics_snapshot& metrics);
  // "fixed_ns,decode_row_ns,prefill_token_ns,decode_key_ps,prefill_pair_ps", where what a step
  // takes beside the model belongs to fixed_ns. `before`: when the run began.
  std::string Text(const llm_metrics_snapshot& before, const llm_metrics_snapshot& after) const;

 private:
  std::vector<llm_metrics_snapshot> fits_;
};

// REQUIRES: of the form above; exits with a message.
llm_sim_costs ParseCosts(const std::string& text);

}  // namespace replay
