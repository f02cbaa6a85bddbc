// A fit of five numbers to at most 128 steps takes some ten microseconds; it is made anew as long
// as it surprises, and every so many steps.
#include "src/scheduler/step_cost_model.h"

#include <algorithm>
#include <cmath>

namespace llm {
namespace {

constexpr int kStepsBetweenFits = 16;
constexpr double kSurprise = 0.05;  // relative error that asks for a new fit
constexpr double kExact = 1e-3;     // residuals below need no weighing
constexpr int kReweightings = 3;
constexpr double kCautionQuantile = 0.9;
constexpr double kMostCaution = 1.3;  // a machine that slips further is not to be predicted
constexpr int kSweeps = 60;           // of coordinate descent: five unknowns settle in far fewer

// What steps of one kind cannot tell apart goes to the first of these terms that takes it: equal
// prefills into tokens (or a chunk many times as long would look free), decodes alone into what is
// fixed (their weights are read once). The ridge is small beside 128 samples of about 1, so that
// data which can tell, do.
enum Term : size_t { kPrefillToken, kFixed, kDecodeRow, kDecodeKey, kPrefillPair };
constexpr double kRidge[] = {1e-4, 1e-3, 1e-2, 1e-2, 1e-2};  // by Term

// Reorders `values`.
double Quantile(absl::Span<double> values, double q) {
  if (values.empty()) return 0;
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

// gram beta = right, in units in which the largest term of each kind is 1.
struct StepCostModel::Normal {
  double gram[kTerms][kTerms] = {};
  double right[kTerms] = {};
  Terms scale = {};

  void Scale(absl::Span<const Sample> samples) {
    for (const Sample& sample : samples) {
      for (size_t i = 0; i < kTerms; ++i) scale[i] = std::max(scale[i], sample.terms[i]);
    }
  }

  void Add(absl::Span<const Sample> samples, const double* weights) {
    for (size_t s = 0; s < samples.size(); ++s) {
      Terms x;
      for (size_t i = 0; i < kTerms; ++i) {
        x[i] = scale[i] > 0 ? samples[s].terms[i] / scale[i] : 0;
      }
      for (size_t i = 0; i < kTerms; ++i) {
        right[i] += weights[s] * x[i];
        for (size_t j = 0; j < kTerms; ++j) gram[i][j] += weights[s] * x[i] * x[j];
      }
    }
  }

  // Minimises over beta >= 0, one coordinate after the other, in the order of Term.
  Terms Solve() const {
    Terms beta = {};
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (size_t i = 0; i < kTerms; ++i) {
        double rest = right[i];
        for (size_t j = 0; j < kTerms; ++j) {
          if (j != i) rest -= gram[i][j] * beta[j];
        }
        beta[i] = std::max(0.0, rest / (gram[i][i] + kRidge[i]));
      }
    }
    for (size_t i = 0; i < kTerms; ++i) beta[i] = scale[i] > 0 ? beta[i] / scale[i] : 0;
    return beta;
  }
};

StepCostModel::Terms StepCostModel::TermsOf(const StepWork& work) {
  return {work.prefill_tokens, 1, work.decode_rows, work.decode_keys, work.prefill_pairs};
}

void StepCostModel::Note(const StepWork& work, int64_t step_ns) {
  const double taken_ns = static_cast<double>(std::max<int64_t>(1, step_ns));
  if (!warm_) {
    warm_ = true;
    return;
  }
  const double predicted_ns = PredictNs(work);
  NoteError(work, taken_ns);
  Sample sample;
  sample.terms = TermsOf(work);
  for (double& term : sample.terms) term /= taken_ns;
  sample.prefill_tokens = work.prefill_tokens;
  (work.prefill_tokens > 0 ? prefills_ : decodes_).Add(sample);
  const bool surprised = std::abs(predicted_ns - taken_ns) > kSurprise * taken_ns;
  if (!surprised && ++steps_since_fit_ < kStepsBetweenFits) return;
  steps_since_fit_ = 0;
  Fit();
  SumError();
}

void StepCostModel::NoteError(const StepWork& work, double step_ns) {
  const bool predictable = work.prefill_tokens > 0 ? fitted() : !decodes_.values().empty();
  if (!predictable) return;
  const double predicted_ns = PredictNs(work);
  errors_.Add(std::abs(predicted_ns - step_ns) / step_ns);
  if (work.prefill_tokens > 0 && predicted_ns > 0) NoteSlip(step_ns / predicted_ns);
}

void StepCostModel::NoteSlip(double ratio) {
  slips_.Add(ratio);
  std::array<double, kSlips> sorted;
  const absl::Span<const double> slips = slips_.values();
  std::copy(slips.begin(), slips.end(), sorted.begin());
  const double high = Quantile(absl::MakeSpan(sorted.data(), slips.size()), kCautionQuantile);
  coefficients_.caution = std::clamp(high, 1.0, kMostCaution);
}

// Huber's weights: 1 within three times the median residual, then falling as its reciprocal.
void StepCostModel::Weigh(const Terms& beta, Weights* weights) const {
  Weights residuals;
  size_t count = 0;
  for (const Samples* samples : {&decodes_, &prefills_}) {
    for (const Sample& sample : samples->values()) {
      double fit = 0;
      for (size_t i = 0; i < kTerms; ++i) fit += beta[i] * sample.terms[i];
      residuals[count++] = std::abs(1 - fit);
    }
  }
  Weights sorted = residuals;
  const double bound = std::max(kExact, 3 * Quantile(absl::MakeSpan(sorted.data(), count), 0.5));
  for (size_t s = 0; s < count; ++s) {
    (*weights)[s] = residuals[s] <= bound ? 1 : bound / residuals[s];
  }
}

void StepCostModel::Fit() {
  Weights weights;
  weights.fill(1);
  Terms beta = {};
  for (int pass = 0; pass <= kReweightings; ++pass) {
    if (pass > 0) Weigh(beta, &weights);
    Normal normal;
    normal.Scale(decodes_.values());
    normal.Scale(prefills_.values());
    normal.Add(decodes_.values(), weights.data());
    normal.Add(prefills_.values(), weights.data() + decodes_.values().size());
    beta = normal.Solve();
  }
  coefficients_ = {.fixed = beta[kFixed],
                   .decode_row = beta[kDecodeRow],
                   .prefill_token = beta[kPrefillToken],
                   .decode_key = beta[kDecodeKey],
                   .prefill_pair = beta[kPrefillPair],
                   .caution = coefficients_.caution};
  most_prefill_tokens_ = 0;
  for (const Sample& sample : prefills_.values()) {
    most_prefill_tokens_ = std::max(most_prefill_tokens_, sample.prefill_tokens);
  }
}

void StepCostModel::SumError() {
  const absl::Span<const double> errors = errors_.values();
  std::array<double, kErrors> sorted;
  std::copy(errors.begin(), errors.end(), sorted.begin());
  const absl::Span<double> all = absl::MakeSpan(sorted.data(), errors.size());
  error_ = {.p50 = Quantile(all, 0.5), .p95 = Quantile(all, 0.95)};
}

}  // namespace llm
