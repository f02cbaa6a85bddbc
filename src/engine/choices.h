// What the choices of one request share: their prompt, and the one FINISHED that follows them all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/engine/delivery.h"
#include "src/engine/queue_place.h"
#include "src/sequence/sequence.h"

namespace llm {

inline constexpr int32_t kMaxChoices = 128;

// Choice 0 draws with the request's seed, so that it is the answer of a request without choices;
// choice i with a hash of both, equal on all machines and in all versions.
uint64_t ChoiceSeed(uint64_t seed, uint32_t choice);

// Made at submit with all that FINISHED needs; the engine thread's alone from then on. A request
// without choices has none.
struct ChoiceGroup {
  explicit ChoiceGroup(int32_t choices) : num_open(choices), num_unsent(choices) {
    siblings.reserve(static_cast<size_t>(choices));
  }
  ChoiceGroup(const ChoiceGroup&) = delete;
  ChoiceGroup& operator=(const ChoiceGroup&) = delete;

  // A choice has ended for good with `finish`; `status` holds its message. Allocates nothing.
  void Add(const FinishRecord& finish, const absl::Status& status);

  std::vector<Sequence*> siblings;  // the open ones
  std::shared_ptr<Outbox> outbox;   // of the FINISHED
  QueuePlace place;                 // of all choices
  int32_t num_open;
  int32_t num_unsent;  // choices whose CHOICE_FINISHED has not been sent
  bool has_token = false;

  // Of the choices that have ended. The reason is that of the first one, by index, that did not end
  // well, else choice 0's; the times are those of the one that ended last.
  FinishRecord finish;
  absl::Status end_status;
};

}  // namespace llm
