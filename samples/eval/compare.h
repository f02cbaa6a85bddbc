// Scores windows by one configuration of model and engine, and compares two by their logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/open.h"

namespace eval {

// Called inside the engine's step; what the row points to is valid until it returns.
using OnRow = std::function<void(const llm_score_row&)>;

// A model with an engine for one window at a time.
class Configuration {
 public:
  // Takes the model of `other` where the flags ask for the same one; `other` may be null.
  Configuration(const tools::OpenFlags& flags, size_t context, const Configuration* other);

  // Log-probabilities of the second half of the window.
  std::vector<float> Score(const std::vector<int32_t>& window, const OnRow& on_row);

  const inlay::Model& model() const { return *model_; }
  // "kv-dtype f16, int8 activations, kernels avx512".
  std::string Description() const;

 private:
  tools::OpenFlags flags_;
  std::shared_ptr<const inlay::Model> model_;
  inlay::Engine engine_;
};

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

// How far a configuration's distributions lie from those of the base.
class Divergence {
 public:
  // Rows of a window: all of the base's first, then the other's in the same order.
  void BeginWindow(size_t num_rows, size_t vocab_size);
  void AddBase(const llm_score_row& row);
  void AddOther(const llm_score_row& row);

  double MeanKl() const;                     // nats, of the other from the base
  double QuantileKl(double quantile) const;  // over tokens
  double Top1Agreement() const;              // share of tokens with the same most likely next one

 private:
  std::vector<float> base_;  // [rows, vocab] of this window
  size_t vocab_size_ = 0, next_base_ = 0, next_other_ = 0;
  std::vector<double> kl_;
  uint64_t agreed_ = 0;
};

}  // namespace eval
