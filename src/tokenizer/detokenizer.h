// Turns a growing list of ids into text deltas that never split a UTF-8 character.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

// One per sequence. Bytes that may begin a character are held back until it is complete or can no
// longer be; an invalid sequence becomes U+FFFD, one for each maximal invalid part, as Python's and
// the WHATWG decoder do.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer* tokenizer, bool render_special)
      : tokenizer_(tokenizer), render_special_(render_special) {}

  // Appends to `text` what the token completes. REQUIRES: 0 <= id < vocab_size.
  void Append(int32_t id, std::string* text);
  // Appends what is still held (an incomplete character gives U+FFFD). Call once, at the end.
  void Finish(std::string* text);
  size_t num_pending_bytes() const { return pending_.size(); }

 private:
  const Tokenizer* tokenizer_;
  bool render_special_;
  std::string pending_;
};

}  // namespace llm
