// The device is believed as far as its ids are ids.
#include "src/engine/drawn_token.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace llm {

absl::StatusOr<SampledToken> DrawnToken(const StepLogits& logits, size_t index,
                                        int32_t num_logprobs) {
  const TokenLogprob& drawn = logits.drawn[index];
  if (drawn.id == kLogitsNotFinite) return absl::InternalError("logits are not finite");
  if (drawn.id == kNothingToDraw) {
    return absl::InternalError("bias and bans leave no token to draw");
  }
  SampledToken token;
  token.id = drawn.id;
  token.logprob = drawn.logprob;
  const auto num_top =
      static_cast<size_t>(std::clamp<int64_t>(num_logprobs, 0, logits.max_drawn_top));
  const TokenLogprob* top = logits.drawn_top + index * static_cast<size_t>(logits.max_drawn_top);
  if (num_top > 0) token.top.assign(top, top + num_top);
  const auto is_id = [&logits](const TokenLogprob& entry) {
    return entry.id >= 0 && entry.id < logits.vocab_size;
  };
  if (!is_id(drawn) || !std::all_of(token.top.begin(), token.top.end(), is_id)) {
    return absl::InternalError(absl::StrCat("the device drew id ", drawn.id, ", or names one, of ",
                                            logits.vocab_size, " ids"));
  }
  return token;
}

}  // namespace llm
