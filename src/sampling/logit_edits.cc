// The cost follows the text, not the vocabulary: an id's edit is found through a table of the
// vocabulary, which the next Begin clears by walking the edits.
#include "src/sampling/logit_edits.h"

#include <algorithm>
#include <limits>

namespace llm {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

}  // namespace

void LogitEdits::Collect(const Request& request, absl::Span<const int32_t> tokens) {
  const absl::Span<const int32_t> output = tokens.subspan(request.prompt.size());
  Begin();
  Apply(request.sampling, tokens, static_cast<int32_t>(request.prompt.size()));
  BanBadWords(request.sampling, output);
  if (output.size() >= static_cast<size_t>(std::max(0, request.sampling.min_new_tokens))) return;
  Ban(request.stop.end_ids);
  Ban(request.stop.stop_ids);
}

void LogitEdits::Begin() {
  for (const LogitEdit& edit : edits_) places_[static_cast<size_t>(edit.id)] = 0;
  edits_.clear();
  counts_.clear();
}

size_t LogitEdits::PlaceOf(int32_t id) {
  int32_t& place = places_[static_cast<size_t>(id)];
  if (place == 0) {
    counts_.push_back(0);
    edits_.push_back({.id = id});
    place = static_cast<int32_t>(edits_.size());
  }
  return static_cast<size_t>(place) - 1;
}

// Repetition: Keskar et al., CTRL (2019), with the sign rule that all engines have since: a penalty
// above 1 always makes the id less likely.
void LogitEdits::Apply(const SamplingParams& params, absl::Span<const int32_t> tokens,
                       int32_t num_prompt) {
  for (const LogitBias& bias : params.logit_bias) edits_[PlaceOf(bias.id)].bias += bias.bias;
  if (params.repetition_penalty != 1.0f) {
    for (const int32_t id : tokens) edits_[PlaceOf(id)].repetition = params.repetition_penalty;
  }
  if (params.presence_penalty == 0.0f && params.frequency_penalty == 0.0f) return;
  for (const int32_t id : tokens.subspan(static_cast<size_t>(num_prompt))) {
    const size_t place = PlaceOf(id);
    const auto count = static_cast<float>(++counts_[place]);
    edits_[place].penalty = params.presence_penalty + params.frequency_penalty * count;
  }
}

void LogitEdits::BanBadWords(const SamplingParams& params, absl::Span<const int32_t> output) {
  for (const std::vector<int32_t>& word : params.bad_words) {
    const size_t before = word.size() - 1;
    if (before > output.size()) continue;
    if (!std::equal(word.begin(), word.end() - 1, output.end() - static_cast<ptrdiff_t>(before))) {
      continue;
    }
    Ban(absl::MakeConstSpan(&word.back(), 1));
  }
}

void LogitEdits::Ban(absl::Span<const int32_t> ids) {
  for (const int32_t id : ids) edits_[PlaceOf(id)].bias = kBanned;
}

}  // namespace llm
