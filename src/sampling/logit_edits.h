// What a request changes in a row of logits: bias, penalties and bans as a list of edits, one for
// each id concerned. A pure function of the request and its tokens, so that no schedule can change
// the answer.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/row_draw.h"
#include "src/sequence/request.h"

namespace llm {

// Memory is kept from row to row.
class LogitEdits {
 public:
  explicit LogitEdits(int32_t vocab_size) : places_(static_cast<size_t>(vocab_size), 0) {}

  // All that `request` changes in the row behind `tokens`, its prompt and what it has generated.
  // REQUIRES, here and below: every id is below vocab_size.
  void Collect(const Request& request, absl::Span<const int32_t> tokens);

  // The same by parts. Begins a row:
  void Begin();
  // Bias first, then the penalties. `tokens`: prompt and output.
  void Apply(const SamplingParams& params, absl::Span<const int32_t> tokens, int32_t num_prompt);
  // What would complete a bad word in `output` cannot be drawn.
  void BanBadWords(const SamplingParams& params, absl::Span<const int32_t> output);
  // These ids cannot be drawn.
  void Ban(absl::Span<const int32_t> ids);

  // Valid until the next change.
  absl::Span<const LogitEdit> edits() const { return edits_; }

 private:
  size_t PlaceOf(int32_t id);

  std::vector<int32_t> places_;  // [vocab_size]: 1 + the place of an id's edit; 0: it has none
  std::vector<LogitEdit> edits_;
  std::vector<int32_t> counts_;  // of the output, beside edits_
};

}  // namespace llm
