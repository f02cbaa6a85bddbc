// Tokens differ between requests and places, so that the prefix cache finds no more than with a
// real model.
#include "src/engine/sim_runner.h"

#include <algorithm>
#include <limits>

namespace llm {
namespace {

uint64_t Mix(uint64_t x) {  // SplitMix64's finaliser (Steele, Lea, Flood 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// As many as a processor's cache keeps the text of: nobody reads it.
constexpr int32_t kTokens = 256;

constexpr double kMaxStepNs = 1e15;  // eleven days

bool Contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

int32_t SimRunner::TokenFor(const Sequence& sequence) const {
  const Request& request = sequence.request;
  const StopParams& stop = request.stop;
  if (stop.min_new_tokens > 0 && sequence.num_generated_tokens() >= stop.min_new_tokens &&
      !stop.end_ids.empty()) {
    return stop.end_ids[0];
  }
  const uint64_t place = static_cast<uint64_t>(sequence.num_tokens());
  const uint64_t drawn = Mix(request.sampling.seed + place * 0x9e3779b97f4a7c15u);
  int32_t id = static_cast<int32_t>(drawn % static_cast<uint64_t>(std::min(vocab_size_, kTokens)));
  // As many tries as there are ids to avoid find another one, if there is any.
  for (size_t i = 0; i <= stop.end_ids.size() + stop.stop_ids.size(); ++i) {
    if (!Contains(stop.end_ids, id) && !Contains(stop.stop_ids, id)) return id;
    id = (id + 1) % vocab_size_;
  }
  return id;
}

absl::StatusOr<StepLogits> SimRunner::Execute(const StepPlan& plan) {
  // At least 1 ns: a clock that stands still would let a host wait for ever.
  const double predicted_ns = std::clamp(cost_.PredictNs(plan.work), 1.0, kMaxStepNs);
  const int64_t left_ns = std::numeric_limits<int64_t>::max() / 4 - clock_->NowNs();
  clock_->AdvanceNs(std::min(static_cast<int64_t>(predicted_ns), left_ns));
  tokens_.clear();
  for (const ScheduledChunk& chunk : plan.chunks) {
    tokens_.insert(tokens_.end(), static_cast<size_t>(chunk.num_logits), TokenFor(*chunk.sequence));
  }
  StepLogits result;
  result.argmax = tokens_;
  result.rows = static_cast<int64_t>(tokens_.size());
  result.vocab_size = vocab_size_;
  return result;
}

}  // namespace llm
