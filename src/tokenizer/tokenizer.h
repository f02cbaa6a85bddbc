// Text to token ids and back. Immutable after Create and safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/tokenizer/text_span.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

struct EncodeOptions {
  bool add_special = true;  // bos/eos as the model's file asks
  bool parse_special =
      false;  // control tokens written in the text become their ids; otherwise they stay text
  // With parse_special: a control token that lies in one of these, even in part, stays text.
  // REQUIRES: as TextSpans, inside the text; INVALID_ARGUMENT where the text is not UTF-8.
  absl::Span<const TextSpan> literal = {};
};

class Tokenizer {
 public:
  // INVALID_ARGUMENT for duplicate or out-of-range ids, merges that do not name tokens, ...;
  // UNIMPLEMENTED, with its name, for an unknown pre-tokenizer: never a silent wrong split.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(TokenizerSpec spec);
  // The same from texts that lie elsewhere and are needed during the call alone; the spec's own are
  // not looked at.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(TokenizerSpec spec,
                                                           const TokenizerTexts& texts);
  virtual ~Tokenizer() = default;

  // Any bytes are accepted: each part that is not UTF-8 is read as U+FFFD, as Python's
  // errors="replace" does. RESOURCE_EXHAUSTED when the pre-tokenizer's match limits are hit.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text,
                                                      const EncodeOptions& options) const = 0;

  // The bytes of one token in the middle of a text; control (and unknown) tokens give "" unless
  // `render_special`. REQUIRES: 0 <= id < vocab_size.
  virtual absl::string_view TokenBytes(int32_t id, bool render_special) const = 0;

  // Joins TokenBytes; drops the space that a leading SPM space prefix added. INVALID_ARGUMENT for
  // an id out of range.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids, bool render_special) const;

  int32_t vocab_size() const { return vocab_size_; }
  int32_t bos_id() const { return spec_.bos_id; }
  int32_t eos_id() const { return spec_.eos_id; }
  bool adds_bos() const { return spec_.add_bos; }
  bool IsControl(int32_t id) const;
  // -1 when no token is exactly this text (as bytes: "\n", not the byte alphabet's character for
  // it; " a", not "U+2581 a").
  virtual int32_t FindToken(absl::string_view text) const = 0;
  // Its tokens, scores and merges are empty: Create turns them into compact tables. TokenBytes has
  // the texts.
  const TokenizerSpec& spec() const { return spec_; }
  virtual uint64_t size_bytes() const { return 0; }

 protected:
  explicit Tokenizer(TokenizerSpec spec)
      : spec_(std::move(spec)), vocab_size_(static_cast<int32_t>(spec_.tokens.size())) {}
  TokenizerSpec spec_;
  int32_t vocab_size_;
};

}  // namespace llm
