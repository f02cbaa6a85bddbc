// Whether the blocks suffice for what the running sequences are expected to become.
#include <algorithm>
#include <cmath>

#include "src/base/reserve.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {
namespace {

// Evenly spread over [0, 1) for consecutive arrivals: multiples of the golden ratio (Weyl, 1916).
double RankOf(const Sequence& sequence) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double multiple =
      static_cast<double>((sequence.arrival_index - 1) % (1 << 20)) * kGoldenRatio;
  return multiple - static_cast<double>(static_cast<int64_t>(multiple));
}

// Standard deviations of the sum of what sequences become that are kept free. 2 halves what is
// preempted under long outputs, and takes 4 % of the throughput.
constexpr double kCaution = 1;

}  // namespace

int32_t SchedulerImpl::ExpectedTokens(const Sequence& sequence, int32_t num_generated) const {
  if (sequence.wants_hidden) return sequence.num_prompt_tokens();
  const int32_t prompt = sequence.num_prompt_tokens();
  const int32_t most = std::max(sequence.request.stop.max_new_tokens, 1);
  if (options_.admission == AdmissionPolicy::kReserve) return prompt + most;
  return prompt +
         lengths_.Predict(sequence.request.request_class, num_generated, RankOf(sequence), most);
}

double SchedulerImpl::VarianceOf(const Sequence& sequence) const {
  if (options_.admission == AdmissionPolicy::kReserve) return 0;
  const double spread =
      lengths_.Spread(sequence.request.request_class, sequence.num_generated_tokens(),
                      std::max(sequence.request.stop.max_new_tokens, 1));
  return spread * spread;
}

// Each sequence grows by a token a step and gives everything back at its end. The blocks that are
// held in all are most at the moment of some end, just before it; all of those moments are looked
// at (Gong et al., "Past-Future Scheduler", ASPLOS 2025). Last blocks are half full on average,
// and one token full at worst, which counts where nothing may be preempted.
bool SchedulerImpl::GrowthFits(const Sequence& sequence, int group, int64_t matched_blocks,
                               int64_t available) {
  ReserveTotal(&growth_, running_.size() + 1);
  growth_.clear();
  const auto add = [this](const Sequence& one, int64_t held, int64_t shared) {
    const int32_t expected = ExpectedTokens(one, one.num_generated_tokens());
    growth_.push_back({.remaining = std::max(0, expected - one.num_tokens()),
                       .known = one.num_tokens(),
                       .variance = VarianceOf(one),
                       .held = held,
                       .given_back = held - std::min(held, shared)});
  };
  for (const Sequence* one : running_) {
    const BlockTable& table = one->block_tables[static_cast<size_t>(group)];
    add(*one, static_cast<int64_t>(table.size()), one->num_shared_blocks);
  }
  add(sequence, matched_blocks, matched_blocks);
  std::sort(growth_.begin(), growth_.end(),
            [](const Growth& a, const Growth& b) { return a.remaining > b.remaining; });
  int64_t given_back = 0;
  for (const Growth& one : growth_) given_back += one.given_back;
  int64_t known = 0;
  double variance = 0;
  int64_t held = 0;
  for (size_t alive = 1; alive <= growth_.size(); ++alive) {
    const Growth& next = growth_[alive - 1];
    known += next.known;
    held += next.held;
    variance += next.variance;
    given_back -= next.given_back;
    const int64_t count = static_cast<int64_t>(alive);
    const int64_t surprise = static_cast<int64_t>(kCaution * std::sqrt(variance));
    const int64_t tokens = known + count * next.remaining + surprise;
    if (tokens / options_.block_size + count - held - given_back > available) return false;
  }
  return true;
}

}  // namespace llm
