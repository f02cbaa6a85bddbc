// Contexts are not among the counters: an average request stands for them.
#include "replay/costs.h"

#include <algorithm>
#include <cstdio>

#include "common/flags.h"

namespace replay {
namespace {

double PredictNs(const llm_metrics_snapshot& fit, double rows, double tokens, double context) {
  return static_cast<double>(fit.cost_fixed_ns_current) +
         rows * static_cast<double>(fit.cost_decode_row_ns_current) +
         tokens * static_cast<double>(fit.cost_prefill_token_ns_current) +
         1e-3 * context *
             (rows * static_cast<double>(fit.cost_decode_key_ps_current) +
              tokens / 2 * static_cast<double>(fit.cost_prefill_pair_ps_current));
}

uint64_t BesideNs(const llm_metrics_snapshot& metrics) {
  return metrics.admit_ns_total + metrics.schedule_ns_total + metrics.commit_ns_total +
         metrics.deliver_ns_total;
}

}  // namespace

void CostLog::Add(const llm_metrics_snapshot& metrics) { fits_.push_back(metrics); }

std::string CostLog::Text(const llm_metrics_snapshot& before,
                          const llm_metrics_snapshot& after) const {
  const double steps =
      static_cast<double>(std::max<uint64_t>(1, after.steps_total - before.steps_total));
  const double requests = static_cast<double>(
      std::max<uint64_t>(1, after.ttft_requests_total - before.ttft_requests_total));
  const double generated =
      static_cast<double>(after.generated_tokens_total - before.generated_tokens_total);
  const double computed =
      static_cast<double>(after.computed_tokens_total - before.computed_tokens_total);
  const double context = computed / requests + generated / requests / 2;
  std::vector<llm_metrics_snapshot> fits = fits_;
  fits.push_back(after);
  const auto middle = fits.begin() + static_cast<ptrdiff_t>(fits.size() / 2);
  std::nth_element(fits.begin(), middle, fits.end(), [&](const auto& a, const auto& b) {
    return PredictNs(a, generated / steps, computed / steps, context) <
           PredictNs(b, generated / steps, computed / steps, context);
  });
  const double beside_ns = static_cast<double>(BesideNs(after) - BesideNs(before)) / steps;
  char text[160];
  std::snprintf(text, sizeof text, "%llu,%llu,%llu,%llu,%llu",
                static_cast<unsigned long long>(middle->cost_fixed_ns_current +
                                                static_cast<uint64_t>(beside_ns)),
                static_cast<unsigned long long>(middle->cost_decode_row_ns_current),
                static_cast<unsigned long long>(middle->cost_prefill_token_ns_current),
                static_cast<unsigned long long>(middle->cost_decode_key_ps_current),
                static_cast<unsigned long long>(middle->cost_prefill_pair_ps_current));
  return text;
}

llm_sim_costs ParseCosts(const std::string& text) {
  llm_sim_costs costs;
  llm_sim_costs_init(&costs);
  unsigned long long values[5] = {};
  if (std::sscanf(text.c_str(), "%llu,%llu,%llu,%llu,%llu", &values[0], &values[1], &values[2],
                  &values[3], &values[4]) != 5)
    tools::Fail("--sim-costs: five numbers with commas between them");
  costs.fixed_ns = values[0];
  costs.decode_row_ns = values[1];
  costs.prefill_token_ns = values[2];
  costs.decode_key_ps = values[3];
  costs.prefill_pair_ps = values[4];
  return costs;
}

}  // namespace replay
