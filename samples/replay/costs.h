// What steps cost on a real engine, as it told while it ran.
#pragma once

#include <inlay/llm.h>

#include <string>
#include <vector>

namespace replay {

// A fit holds for the last steps alone, and another program may have taken the machine during
// those. So each fit of a run is scaled until decodes and prefills of the whole run take in total
// what they did, and the one that then predicts single steps best stands for the run.
class CostLog {
 public:
  void Add(const llm_metrics_snapshot& metrics) { fits_.push_back(metrics); }
  // "fixed_ns,decode_row_ns,prefill_token_ns,decode_key_ps,prefill_pair_ps". `steps`: of the run,
  // none failed.
  std::string Text(const std::vector<llm_step_record>& steps) const;

 private:
  std::vector<llm_metrics_snapshot> fits_;
};

// REQUIRES: of the form above; exits with a message.
llm_sim_costs ParseCosts(const std::string& text);

}  // namespace replay
