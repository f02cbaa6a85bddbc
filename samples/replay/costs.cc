// Contexts count as if every layer saw all of them, and a step's prefills as if they were equal.
#include "replay/costs.h"

#include <cstdio>
#include <limits>

#include "common/flags.h"

namespace replay {
namespace {

struct Costs {
  double fixed_ns = 0;
  double decode_row_ns = 0;
  double prefill_token_ns = 0;
  double decode_key_ps = 0;
  double prefill_pair_ps = 0;
};

Costs CostsOf(const llm_metrics_snapshot& fit) {
  return {static_cast<double>(fit.cost_fixed_ns_current),
          static_cast<double>(fit.cost_decode_row_ns_current),
          static_cast<double>(fit.cost_prefill_token_ns_current),
          static_cast<double>(fit.cost_decode_key_ps_current),
          static_cast<double>(fit.cost_prefill_pair_ps_current)};
}

double TakenNs(const llm_step_record& step) {
  return static_cast<double>(step.end_ns - step.begin_ns);
}

double DecodeNs(const Costs& costs, const llm_step_record& step) {
  return costs.fixed_ns + costs.decode_row_ns * step.decode_sequences +
         1e-3 * costs.decode_key_ps * static_cast<double>(step.decode_context_tokens);
}

double PrefillNs(const Costs& costs, const llm_step_record& step) {
  if (step.prefill_sequences == 0) return 0;
  const double pairs = static_cast<double>(step.prefill_tokens) *
                           static_cast<double>(step.prefill_context_tokens) /
                           step.prefill_sequences -
                       static_cast<double>(step.prefill_tokens_squared) / 2;
  return costs.prefill_token_ns * step.prefill_tokens + 1e-3 * costs.prefill_pair_ps * pairs;
}

double Ratio(double taken_ns, double predicted_ns) {
  return taken_ns > 0 && predicted_ns > 0 ? taken_ns / predicted_ns : 1;
}

// Decodes first, from the steps that do nothing else.
Costs Scale(Costs costs, const std::vector<llm_step_record>& steps) {
  double taken_ns = 0, predicted_ns = 0;
  for (const llm_step_record& step : steps) {
    if (step.prefill_tokens > 0) continue;
    taken_ns += TakenNs(step);
    predicted_ns += DecodeNs(costs, step);
  }
  const double decode = Ratio(taken_ns, predicted_ns);
  costs.fixed_ns *= decode;
  costs.decode_row_ns *= decode;
  costs.decode_key_ps *= decode;
  taken_ns = predicted_ns = 0;
  for (const llm_step_record& step : steps) {
    if (step.prefill_tokens == 0) continue;
    taken_ns += TakenNs(step) - DecodeNs(costs, step);
    predicted_ns += PrefillNs(costs, step);
  }
  const double prefill = Ratio(taken_ns, predicted_ns);
  costs.prefill_token_ns *= prefill;
  costs.prefill_pair_ps *= prefill;
  return costs;
}

double SquaredError(const Costs& costs, const std::vector<llm_step_record>& steps) {
  double sum = 0;
  for (const llm_step_record& step : steps) {
    const double off_ns = DecodeNs(costs, step) + PrefillNs(costs, step) - TakenNs(step);
    sum += off_ns * off_ns;
  }
  return sum;
}

unsigned long long Rounded(double value) { return static_cast<unsigned long long>(value + 0.5); }

}  // namespace

std::string CostLog::Text(const std::vector<llm_step_record>& steps) const {
  Costs best;
  double least = std::numeric_limits<double>::infinity();
  for (const llm_metrics_snapshot& fit : fits_) {
    const Costs costs = Scale(CostsOf(fit), steps);
    const double error = SquaredError(costs, steps);
    if (error >= least) continue;
    least = error;
    best = costs;
  }
  char text[160];
  std::snprintf(text, sizeof text, "%llu,%llu,%llu,%llu,%llu", Rounded(best.fixed_ns),
                Rounded(best.decode_row_ns), Rounded(best.prefill_token_ns),
                Rounded(best.decode_key_ps), Rounded(best.prefill_pair_ps));
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
