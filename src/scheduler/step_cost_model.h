// Predicts how long a step takes from what the last steps took.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/scheduler/step_work.h"

namespace llm {

// time = fixed + a decode_rows + b prefill_tokens + c decode_keys + d prefill_pairs, no coefficient
// below zero, fitted to the last steps of each kind by least squares of the relative errors. Steps
// far off the fit (another program took the core) weigh less. Allocates nothing.
class StepCostModel {
 public:
  struct Coefficients {  // ns
    double fixed = 0;
    double decode_row = 0;
    double prefill_token = 0;
    double decode_key = 0;
    double prefill_pair = 0;
    // What nine in ten steps with a prefill stay within, as a multiple of the prediction, by how
    // the last ones took longer: noise, and what no term says.
    double caution = 1;

    double PredictNs(const StepWork& work) const {
      return fixed + decode_row * work.decode_rows + prefill_token * work.prefill_tokens +
             decode_key * work.decode_keys + prefill_pair * work.prefill_pairs;
    }
  };

  // A step of `work` took `step_ns`. The first one warms caches and threads and is left out.
  void Note(const StepWork& work, int64_t step_ns);

  // Whether prefills can be predicted: some were seen.
  bool fitted() const { return most_prefill_tokens_ > 0; }
  // The largest prefill among the steps that it was fitted to: far beyond, it is a guess.
  double most_prefill_tokens() const { return most_prefill_tokens_; }
  double PredictNs(const StepWork& work) const { return coefficients_.PredictNs(work); }
  double CautiousNs(const StepWork& work) const { return coefficients_.caution * PredictNs(work); }
  const Coefficients& coefficients() const { return coefficients_; }

  // Of |predicted - taken| / taken over the last steps, each predicted before it was noted.
  struct Error {
    double p50 = 0;
    double p95 = 0;
  };
  Error error() const { return error_; }

 private:
  static constexpr size_t kTerms = 5;
  static constexpr size_t kSamplesOfAKind = 64;
  static constexpr size_t kErrors = 128;
  static constexpr size_t kSlips = 32;
  using Terms = std::array<double, kTerms>;
  struct Sample {
    Terms terms;  // divided by the step's time: the fit wants 1
    double prefill_tokens = 0;
  };
  // The last ones of a kind: decoding for an hour must not make it forget what prefills cost.
  template <typename T, size_t kCapacity>
  class Ring {
   public:
    void Add(const T& value) {
      values_[next_] = value;
      next_ = (next_ + 1) % kCapacity;
      size_ = std::max(size_, next_ == 0 ? kCapacity : next_);
    }
    absl::Span<const T> values() const { return {values_.data(), size_}; }

   private:
    std::array<T, kCapacity> values_ = {};
    size_t size_ = 0;
    size_t next_ = 0;
  };
  using Samples = Ring<Sample, kSamplesOfAKind>;
  using Weights = std::array<double, 2 * kSamplesOfAKind>;  // of decodes_, then of prefills_
  struct Normal;                                            // equations

  static Terms TermsOf(const StepWork& work);
  void NoteError(const StepWork& work, double step_ns);
  void NoteSlip(double ratio);
  void Fit();
  void Weigh(const Terms& beta, Weights* weights) const;
  void SumError();

  Samples decodes_;
  Samples prefills_;
  Ring<double, kErrors> errors_;
  Ring<double, kSlips> slips_;  // taken / predicted of the last steps with a prefill
  bool warm_ = false;
  int steps_since_fit_ = 0;
  double most_prefill_tokens_ = 0;
  Coefficients coefficients_;
  Error error_;
};

}  // namespace llm
