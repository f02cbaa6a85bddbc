// A model with an engine: what is measured, and scored windows of several of them side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/open.h"
#include "eval/compare.h"

namespace eval {

// Called inside the engine's step; what the row points to is valid until it returns.
using OnRow = std::function<void(const llm_score_row&)>;

struct Speed {
  double prefill = 0, decode = 0;  // tokens a second; 0: the context is too short to tell
};

// For one sequence of up to `context` tokens at a time.
class Configuration {
 public:
  // Takes the model of `other` where the flags ask for the same one; `other` may be null.
  Configuration(const tools::OpenFlags& flags, size_t context, const Configuration* other);

  // Log-probabilities of ids [first, end), given all before them.
  std::vector<float> Score(const std::vector<int32_t>& ids, size_t first, size_t end,
                           const OnRow& on_row);
  // Of one stream that fills the context with `ids` and a few tokens more: the best of three.
  Speed Measure(const std::vector<int32_t>& ids);

  const tools::OpenFlags& flags() const { return flags_; }
  const inlay::Model& model() const { return *model_; }
  // "kv-dtype f16, default activations, kernels avx512": int8, bf16 or f32, as the weights are.
  std::string Description() const;

 private:
  Speed MeasureOnce(const std::vector<int32_t>& ids, size_t prompt_tokens, size_t new_tokens);

  tools::OpenFlags flags_;
  size_t context_;
  std::shared_ptr<const inlay::Model> model_;
  inlay::Engine engine_;
};

// One configuration, and what its windows gave.
struct Candidate {
  Configuration* configuration;
  Perplexity perplexity;
  Divergence divergence;
};

// Scores the second half of each window by the base and by each candidate, which see it in pieces
// of at most 256 MiB of the base's logits. `base->divergence` stays empty.
void ScoreWindows(const std::vector<std::vector<int32_t>>& windows, Candidate* base,
                  std::vector<Candidate>* candidates);

}  // namespace eval
