// Sums are in double: a hundred thousand terms of a row are added up.
#include "eval/compare.h"

#include <algorithm>
#include <cmath>

#include "common/flags.h"

namespace eval {
namespace {

double LogSumExp(const float* logits, size_t size) {
  const double most = static_cast<double>(*std::max_element(logits, logits + size));
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += std::exp(static_cast<double>(logits[i]) - most);
  return most + std::log(sum);
}

// NaN for fewer than two values.
double StandardErrorOfMean(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  if (n < 2) return NAN;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return std::sqrt(squares / (n - 1) / n);
}

}  // namespace

void Perplexity::AddWindow(const std::vector<float>& logprobs) {
  double sum = 0;
  for (const float logprob : logprobs) sum -= static_cast<double>(logprob);
  sum_ += sum;
  count_ += logprobs.size();
  window_means_.push_back(sum / static_cast<double>(logprobs.size()));
}

double Perplexity::Value() const { return std::exp(MeanNll()); }

double Perplexity::StandardError() const { return Value() * StandardErrorOfMean(window_means_); }

NllDifference Difference(const Perplexity& base, const Perplexity& other) {
  std::vector<double> differences = other.window_mean_nll();
  for (size_t i = 0; i < differences.size(); ++i) differences[i] -= base.window_mean_nll()[i];
  return {other.MeanNll() - base.MeanNll(), StandardErrorOfMean(differences)};
}

void BaseRows::Begin(size_t num_rows, size_t vocab_size) {
  logits_.clear();
  logits_.reserve(num_rows * vocab_size);
  norms_.clear();
  vocab_size_ = vocab_size;
}

void BaseRows::Add(const llm_score_row& row) {
  if (row.num_logits != vocab_size_) tools::Fail("a row of another size than the vocabulary");
  logits_.insert(logits_.end(), row.logits, row.logits + vocab_size_);
  norms_.push_back(LogSumExp(row.logits, vocab_size_));
}

void Divergence::Add(const BaseRows& base, size_t index, const llm_score_row& row) {
  const size_t vocab_size = base.vocab_size();
  if (row.num_logits != vocab_size || index >= base.size())
    tools::Fail("the configurations differ in vocabulary or rows");
  const float* p = base.logits(index);
  const float* q = row.logits;
  const double p_norm = base.norm(index), q_norm = LogSumExp(q, vocab_size);
  double kl = 0;
  for (size_t i = 0; i < vocab_size; ++i) {
    const double log_p = static_cast<double>(p[i]) - p_norm;
    kl += std::exp(log_p) * (log_p - (static_cast<double>(q[i]) - q_norm));
  }
  kl_.push_back(std::max(kl, 0.0));  // rounding alone takes it below
  agreed_ += std::max_element(p, p + vocab_size) - p == std::max_element(q, q + vocab_size) - q;
}

double Divergence::MeanKl() const {
  double sum = 0;
  for (const double kl : kl_) sum += kl;
  return kl_.empty() ? NAN : sum / static_cast<double>(kl_.size());
}

double Divergence::QuantileKl(double quantile) const {
  if (kl_.empty()) return NAN;
  std::vector<double> sorted = kl_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1))];
}

double Divergence::Top1Agreement() const {
  return kl_.empty() ? NAN : static_cast<double>(agreed_) / static_cast<double>(kl_.size());
}

}  // namespace eval
