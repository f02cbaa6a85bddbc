// Choices token by token, then one counting sort of all of them. A few thousand exponentials a
// layer: every CPU backend routes here.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

using Scores = std::array<double, kMaxExperts>;

void ComputeScores(const RouterRule& rule, const float* logits, double* scores) {
  if (rule.score == RouterScore::kSigmoid) {
    for (int e = 0; e < rule.num_experts; ++e) scores[e] = 1 / (1 + std::exp(-double{logits[e]}));
    return;
  }
  double max = double{logits[0]};
  for (int e = 1; e < rule.num_experts; ++e) max = std::max(max, double{logits[e]});
  double sum = 0;
  for (int e = 0; e < rule.num_experts; ++e) sum += scores[e] = std::exp(double{logits[e]} - max);
  for (int e = 0; e < rule.num_experts; ++e) scores[e] /= sum;
}

// The first of the largest of values[0, count) that is not taken. NaN loses to nothing and nothing
// to it, so that an index always comes back.
int Best(const double* values, const bool* taken, int count) {
  int best = -1;
  for (int i = 0; i < count; ++i) {
    if (!taken[i] && (best < 0 || values[i] > values[best])) best = i;
  }
  return best;
}

double GroupScore(const RouterRule& rule, const double* choice, int size) {
  double first = choice[0];
  double second = -HUGE_VAL;
  for (int i = 1; i < size; ++i) {
    second = std::max(second, std::min(first, choice[i]));
    first = std::max(first, choice[i]);
  }
  return rule.score == RouterScore::kSigmoid && size > 1 ? first + second : first;
}

// Marks the experts outside the best groups as taken.
void LimitToGroups(const RouterRule& rule, const double* choice, bool* taken) {
  const int size = rule.num_experts / rule.num_groups;
  Scores groups;
  std::array<bool, kMaxExperts> chosen{};
  for (int g = 0; g < rule.num_groups; ++g) {
    groups[static_cast<size_t>(g)] = GroupScore(rule, choice + g * size, size);
  }
  for (int i = 0; i < rule.groups_per_token; ++i) {
    chosen[static_cast<size_t>(Best(groups.data(), chosen.data(), rule.num_groups))] = true;
  }
  for (int e = 0; e < rule.num_experts; ++e) taken[e] = !chosen[static_cast<size_t>(e / size)];
}

// Writes the token's weights, and its experts in the place of rows.
void Choose(const MoeRouteParams& p, int64_t token) {
  const RouterRule& rule = p.rule;
  Scores scores;
  Scores choice;
  std::array<bool, kMaxExperts> taken{};
  ComputeScores(rule, p.logits + token * rule.num_experts, scores.data());
  for (int e = 0; e < rule.num_experts; ++e) {
    const double bias = p.selection_bias != nullptr ? double{p.selection_bias[e]} : 0.0;
    choice[static_cast<size_t>(e)] = scores[static_cast<size_t>(e)] + bias;
  }
  if (rule.groups_per_token < rule.num_groups) LimitToGroups(rule, choice.data(), taken.data());
  float* weights = p.weights + token * rule.experts_per_token;
  int32_t* experts = p.rows + token * rule.experts_per_token;
  double sum = 0;
  for (int j = 0; j < rule.experts_per_token; ++j) {
    const int best = Best(choice.data(), taken.data(), rule.num_experts);
    taken[static_cast<size_t>(best)] = true;
    experts[j] = best;
    sum += scores[static_cast<size_t>(best)];
  }
  const double factor = double{rule.scale} / (rule.normalize ? sum + 1e-20 : 1.0);
  for (int j = 0; j < rule.experts_per_token; ++j) {
    weights[j] = static_cast<float>(scores[static_cast<size_t>(experts[j])] * factor);
  }
}

void SortByExpert(const MoeRouteParams& p) {
  const int k = p.rule.experts_per_token;
  const int64_t num_rows = p.num_tokens * k;
  std::fill(p.expert_begin, p.expert_begin + p.rule.num_experts + 1, 0);
  for (int64_t i = 0; i < num_rows; ++i) ++p.expert_begin[p.rows[i] + 1];
  for (int e = 0; e < p.rule.num_experts; ++e) p.expert_begin[e + 1] += p.expert_begin[e];
  for (int64_t i = 0; i < num_rows; ++i) {
    const int32_t row = p.expert_begin[p.rows[i]]++;
    p.row_tokens[row] = static_cast<int32_t>(i / k);
    p.rows[i] = row;
  }
  // Each begin has moved to its expert's end, which is where the next one begins.
  std::copy_backward(p.expert_begin, p.expert_begin + p.rule.num_experts,
                     p.expert_begin + p.rule.num_experts + 1);
  p.expert_begin[0] = 0;
}

}  // namespace

absl::Status ReferenceMoeRoute(const MoeRouteParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckMoeRoute(params));
  RunTasks(stream, params.num_tokens,
           [&](int64_t token, int /*worker*/) { Choose(params, token); });
  SortByExpert(params);
  return absl::OkStatus();
}

}  // namespace llm
