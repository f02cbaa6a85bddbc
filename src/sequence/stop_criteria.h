// Decides when a sequence ends, and which text may be shown before a stop string can still begin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/sequence/request.h"

namespace llm {

enum class FinishReason : int32_t {
  kNone = 0,
  kEndToken = 1,
  kStopToken = 2,
  kStopString = 3,
  kLength = 4,
  kCancelled = 5,
  kDeadline = 6,
  kRejected = 7,
  kError = 8,
};

// One per sequence. Stop strings may span tokens and characters; the earliest match in the text
// wins, the longest at a tie.
class StopCriteria {
 public:
  // `params` outlives the object. Builds one table of 4 bytes a byte of each stop string.
  explicit StopCriteria(const StopParams* params);

  struct Result {
    FinishReason reason = FinishReason::kNone;
    int stop_string_index = -1;  // which stop string, for kStopString
  };
  // `token` was generated as number `num_generated` (from 1), and `delta` is the text it completed.
  // Appends to `shown` what the user may see now. A stop string in the text ends it there, whatever
  // the token is. On kEndToken/kStopToken/kLength nothing is withheld any more. End and stop tokens
  // end before length does. The text of the first min_new_tokens tokens is searched for nothing.
  Result Append(int32_t token, int32_t num_generated, absl::string_view delta, std::string* shown);
  // The sequence ends for another reason: gives what is withheld.
  void Flush(std::string* shown);

 private:
  // Follows one stop string through the text: `matched` bytes of it are the text's end.
  struct Matcher {
    std::vector<uint32_t>
        fallback;  // [i]: the longest proper prefix that also ends the first i + 1 bytes
    size_t matched = 0;
  };
  struct Match {
    int index = -1;
    size_t begin = 0;  // bytes into withheld_
    size_t end = 0;
  };

  // Offset after the stop string's first end in `delta`; npos when it does not end there.
  static size_t Feed(const std::string& stop, absl::string_view delta, Matcher* matcher);
  Match FindStop(absl::string_view delta);

  const StopParams* params_;
  std::vector<Matcher> matchers_;  // [stop_strings]
  std::string withheld_;
};

}  // namespace llm
