// When a sequence ends, and which text is shown before it does.
#include "src/sequence/stop_criteria.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace llm {
namespace {

constexpr int32_t kEnd = 100;
constexpr int32_t kStop = 101;

StopParams Params(std::vector<std::string> stop_strings, int32_t max_new_tokens = 1000) {
  StopParams params;
  params.max_new_tokens = max_new_tokens;
  params.end_ids = {kEnd};
  params.stop_ids = {kStop};
  params.stop_strings = std::move(stop_strings);
  return params;
}

// Feeds deltas as ordinary tokens until one ends the sequence.
struct Outcome {
  std::string shown;
  StopCriteria::Result result;
};
Outcome Feed(const StopParams& params, const std::vector<std::string>& deltas) {
  StopCriteria criteria(&params);
  Outcome run;
  int32_t generated = 0;
  for (const std::string& delta : deltas) {
    run.result = criteria.Append(1, ++generated, delta, &run.shown);
    if (run.result.reason != FinishReason::kNone) break;
  }
  return run;
}

TEST(StopCriteriaTest, ShowsTextAtOnceWithoutStopStrings) {
  const StopParams params = Params({});
  EXPECT_EQ(Feed(params, {"hello ", "world"}).shown, "hello world");
}

TEST(StopCriteriaTest, EndsAtTheEndToken) {
  const StopParams params = Params({"xyz"}, 1);
  StopCriteria criteria(&params);
  std::string shown;
  EXPECT_EQ(criteria.Append(kEnd, 1, "ax", &shown).reason, FinishReason::kEndToken);
  EXPECT_EQ(shown, "ax");
}

TEST(StopCriteriaTest, SearchesOnlyBehindTheLeastNumberOfTokens) {
  StopParams params = Params({"ab"});
  params.min_new_tokens = 2;
  const Outcome run = Feed(params, {"ab", "xa", "bab", "never"});
  EXPECT_EQ(run.shown, "abxab");
  EXPECT_EQ(run.result.reason, FinishReason::kStopString);
  params.max_new_tokens = 2;
  const Outcome cut = Feed(params, {"ab", "ab", "never"});
  EXPECT_EQ(cut.shown, "abab");
  EXPECT_EQ(cut.result.reason, FinishReason::kLength);
}

TEST(StopCriteriaTest, EndsAtAStopToken) {
  const StopParams params = Params({}, 1);
  StopCriteria criteria(&params);
  std::string shown;
  EXPECT_EQ(criteria.Append(kStop, 1, "", &shown).reason, FinishReason::kStopToken);
}

TEST(StopCriteriaTest, EndsAtTheLengthAndShowsWhatWasWithheld) {
  const Outcome run = Feed(Params({"abcd"}, 2), {"xa", "b"});
  EXPECT_EQ(run.result.reason, FinishReason::kLength);
  EXPECT_EQ(run.shown, "xab");
}

TEST(StopCriteriaTest, FindsAStopStringThatSpansTokens) {
  const Outcome run = Feed(Params({"no", "END"}), {"it ", "is E", "N", "D of it"});
  EXPECT_EQ(run.result.reason, FinishReason::kStopString);
  EXPECT_EQ(run.result.stop_string_index, 1);
  EXPECT_EQ(run.shown, "it is ");
}

TEST(StopCriteriaTest, IncludesTheStopStringWhenAsked) {
  StopParams params = Params({"END"});
  params.include_stop_string = true;
  EXPECT_EQ(Feed(params, {"a E", "ND b"}).shown, "a END");
}

TEST(StopCriteriaTest, LetsTheEarliestMatchWinAndTheLongestAtATie) {
  EXPECT_EQ(Feed(Params({"d", "bc"}), {"abcd"}).result.stop_string_index, 1);
  EXPECT_EQ(Feed(Params({"bc", "bcd", "b"}), {"abcd"}).result.stop_string_index, 1);
}

TEST(StopCriteriaTest, WithholdsOnlyWhatCanBeginAStopString) {
  const StopParams params = Params({"aab"});
  StopCriteria criteria(&params);
  std::string shown;
  criteria.Append(1, 1, "xaaa", &shown);
  EXPECT_EQ(shown, "xa");
  criteria.Append(1, 2, "c", &shown);
  EXPECT_EQ(shown, "xaaac");
}

TEST(StopCriteriaTest, FlushGivesWhatIsWithheld) {
  const StopParams params = Params({"stop"});
  StopCriteria criteria(&params);
  std::string shown;
  criteria.Append(1, 1, "a sto", &shown);
  EXPECT_EQ(shown, "a ");
  criteria.Flush(&shown);
  EXPECT_EQ(shown, "a sto");
}

// The definition, by search in the whole text: the first delta that completes a stop string ends
// the sequence; before, all is shown but the longest end that is a proper beginning of a stop
// string.
TEST(StopCriteriaTest, EqualsASearchInTheWholeText) {
  std::mt19937 random(7);
  const auto text = [&](size_t max_length) {
    std::string result(1 + random() % max_length, ' ');
    for (char& c : result) c = static_cast<char>('a' + random() % 2);
    return result;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(1 + random() % 3);
    for (std::string& stop : stops) stop = text(7);
    const StopParams params = Params(stops);
    StopCriteria criteria(&params);
    std::string all, shown;
    for (int32_t token = 1; token < 12; ++token) {
      const std::string delta = text(3);
      all += delta;
      const auto result = criteria.Append(1, token, delta, &shown);
      size_t begin = std::string::npos, length = 0;
      for (const std::string& stop : stops) {
        const size_t found = all.find(stop);
        if (found < begin ||
            (found == begin && found != std::string::npos && stop.size() > length)) {
          begin = found;
          length = stop.size();
        }
      }
      if (begin != std::string::npos) {
        ASSERT_EQ(result.reason, FinishReason::kStopString) << round;
        ASSERT_EQ(stops[static_cast<size_t>(result.stop_string_index)].size(), length);
        ASSERT_EQ(shown, all.substr(0, begin));
        break;
      }
      ASSERT_EQ(result.reason, FinishReason::kNone);
      size_t keep = 0;
      for (const std::string& stop : stops) {
        for (size_t n = 1; n < stop.size() && n <= all.size(); ++n) {
          if (all.compare(all.size() - n, n, stop, 0, n) == 0) keep = std::max(keep, n);
        }
      }
      ASSERT_EQ(shown, all.substr(0, all.size() - keep)) << round;
    }
  }
}

}  // namespace
}  // namespace llm
