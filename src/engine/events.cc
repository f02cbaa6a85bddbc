// Appending one delta to another with the strong guarantee: all room is made before anything
// changes.
#include "src/engine/events.h"

#include <algorithm>

namespace llm {
namespace {

// Doubles, since reserving the exact size each time would make appending quadratic.
template <typename Container>
void ReserveMore(Container* container, size_t more) {
  const size_t needed = container->size() + more;
  if (needed > container->capacity()) container->reserve(std::max(needed, 2 * container->size()));
}

}  // namespace

void Delta::Clear() {
  token_ids.clear();
  text.clear();
  logprobs.clear();
}

void Delta::Append(const Delta& other) {
  ReserveMore(&token_ids, other.token_ids.size());
  ReserveMore(&text, other.text.size());
  ReserveMore(&logprobs, other.logprobs.size());
  token_ids.insert(token_ids.end(), other.token_ids.begin(), other.token_ids.end());
  text.append(other.text);
  logprobs.insert(logprobs.end(), other.logprobs.begin(), other.logprobs.end());
}

}  // namespace llm
