// What is measured of scored windows: perplexity, and how far a configuration's distributions lie
// from those of a base.
#pragma once

#include <inlay/llm.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace eval {

// Sums over windows of one configuration.
class Perplexity {
 public:
  void AddWindow(const std::vector<float>& logprobs);
  uint64_t count() const { return count_; }
  const std::vector<double>& window_mean_nll() const { return window_means_; }
  double MeanNll() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double Value() const;
  // Of Value, with the windows as samples: tokens of one window depend on each other. NaN for fewer
  // than two windows.
  double StandardError() const;

 private:
  double sum_ = 0;
  uint64_t count_ = 0;
  std::vector<double> window_means_;
};

// By how much the mean NLL of `other` exceeds that of `base` on the same windows, and the standard
// error of that: much smaller than of either, since both meet the same text.
struct NllDifference {
  double mean, standard_error;
};
NllDifference Difference(const Perplexity& base, const Perplexity& other);

// Consecutive rows of logits as the base gave them: all that is kept of its distributions.
class BaseRows {
 public:
  void Begin(size_t num_rows, size_t vocab_size);
  void Add(const llm_score_row& row);

  size_t size() const { return norms_.size(); }
  size_t vocab_size() const { return vocab_size_; }
  const float* logits(size_t row) const { return logits_.data() + row * vocab_size_; }
  double norm(size_t row) const { return norms_[row]; }  // log of the sum of exp(logit)

 private:
  std::vector<float> logits_;  // [rows, vocab]
  std::vector<double> norms_;
  size_t vocab_size_ = 0;
};

// How far a configuration's distributions lie from those of the base.
class Divergence {
 public:
  // `row` of the other configuration against row `index` of the base.
  void Add(const BaseRows& base, size_t index, const llm_score_row& row);

  double MeanKl() const;                     // nats, of the other from the base
  double QuantileKl(double quantile) const;  // over tokens
  double Top1Agreement() const;              // share of tokens with the same most likely next one

 private:
  std::vector<double> kl_;
  uint64_t agreed_ = 0;
};

}  // namespace eval
