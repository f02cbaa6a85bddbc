// Each stop string is followed through the text by its own Knuth-Morris-Pratt automaton: linear
// time, whatever the strings.
#include "src/sequence/stop_criteria.h"

#include <algorithm>

namespace llm {
namespace {

bool Contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

StopCriteria::StopCriteria(const StopParams* params) : params_(params) {
  for (const std::string& stop : params->stop_strings) {
    Matcher matcher;
    matcher.fallback.resize(stop.size(), 0);
    size_t length = 0;
    for (size_t i = 1; i < stop.size(); ++i) {
      while (length > 0 && stop[i] != stop[length]) length = matcher.fallback[length - 1];
      if (stop[i] == stop[length]) ++length;
      matcher.fallback[i] = static_cast<uint32_t>(length);
    }
    matchers_.push_back(std::move(matcher));
  }
}

size_t StopCriteria::Feed(const std::string& stop, absl::string_view delta, Matcher* matcher) {
  size_t matched = matcher->matched;
  for (size_t i = 0; i < delta.size(); ++i) {
    while (matched > 0 && delta[i] != stop[matched]) matched = matcher->fallback[matched - 1];
    if (delta[i] == stop[matched]) ++matched;
    if (matched == stop.size()) return i + 1;
  }
  matcher->matched = matched;
  return std::string::npos;
}

StopCriteria::Match StopCriteria::FindStop(absl::string_view delta) {
  Match best;
  for (size_t i = 0; i < matchers_.size(); ++i) {
    const std::string& stop = params_->stop_strings[i];
    if (stop.empty()) continue;
    const size_t end_in_delta = Feed(stop, delta, &matchers_[i]);
    if (end_in_delta == std::string::npos) continue;
    const size_t end = withheld_.size() + end_in_delta;
    const size_t begin = end - stop.size();
    if (best.index >= 0 && (begin > best.begin || (begin == best.begin && end <= best.end)))
      continue;
    best = Match{static_cast<int>(i), begin, end};
  }
  return best;
}

StopCriteria::Result StopCriteria::Append(int32_t token, int32_t num_generated,
                                          absl::string_view delta, std::string* shown) {
  Result result;
  if (num_generated <= params_->min_new_tokens) {
    shown->append(delta.data(), delta.size());
    if (num_generated >= params_->max_new_tokens) result.reason = FinishReason::kLength;
    return result;
  }
  const Match match = FindStop(delta);
  withheld_.append(delta.data(), delta.size());
  if (match.index >= 0) {
    shown->append(withheld_, 0, params_->include_stop_string ? match.end : match.begin);
    withheld_.clear();
    result.reason = FinishReason::kStopString;
    result.stop_string_index = match.index;
    return result;
  }
  if (Contains(params_->end_ids, token)) {
    result.reason = FinishReason::kEndToken;
  } else if (Contains(params_->stop_ids, token)) {
    result.reason = FinishReason::kStopToken;
  } else if (num_generated >= params_->max_new_tokens) {
    result.reason = FinishReason::kLength;
  }
  if (result.reason != FinishReason::kNone) {
    Flush(shown);
    return result;
  }
  // A stop string can still begin only where some automaton stands.
  size_t keep = 0;
  for (const Matcher& matcher : matchers_) keep = std::max(keep, matcher.matched);
  shown->append(withheld_, 0, withheld_.size() - keep);
  withheld_.erase(0, withheld_.size() - keep);
  return result;
}

void StopCriteria::Flush(std::string* shown) {
  shown->append(withheld_);
  withheld_.clear();
  for (Matcher& matcher : matchers_) matcher.matched = 0;
}

}  // namespace llm
