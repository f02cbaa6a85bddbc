// Decides when a sequence ends, and which text may be shown before a stop string can still begin.
#pragma once

#include <cstdint>
#include <string>

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

// One per sequence. Stop strings may span tokens and characters; the earliest match in the text wins, the longest at a tie.
class StopCriteria {
 public:
  explicit StopCriteria(const StopParams* params) : params_(params) {}

  struct Result {
    FinishReason reason = FinishReason::kNone;
    int stop_string_index = -1;   // which stop string, for kStopString
  };
  // `token` was generated as number `num_generated` (from 1), and `delta` is the text it completed. Appends to `shown` what the user
  // may see now. On kEndToken/kStopToken/kLength nothing is withheld any more. End and stop tokens end before length does.
  Result Append(int32_t token, int32_t num_generated, absl::string_view delta, std::string* shown);
  // The sequence ends for another reason: gives what is withheld.
  void Flush(std::string* shown);

 private:
  const StopParams* params_;
  std::string withheld_;
};

}  // namespace llm
