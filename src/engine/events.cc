// Appending one delta to another with the strong guarantee: all room is made before anything
// changes.
#include "src/engine/events.h"

#include "src/base/reserve.h"

namespace llm {

void Delta::Clear() {
  token_ids.clear();
  text.clear();
  logprobs.clear();
}

void Delta::Append(const Delta& other) {
  ReserveTotal(&token_ids, token_ids.size() + other.token_ids.size());
  ReserveTotal(&text, text.size() + other.text.size());
  ReserveTotal(&logprobs, logprobs.size() + other.logprobs.size());
  token_ids.insert(token_ids.end(), other.token_ids.begin(), other.token_ids.end());
  text.append(other.text);
  logprobs.insert(logprobs.end(), other.logprobs.begin(), other.logprobs.end());
}

}  // namespace llm
