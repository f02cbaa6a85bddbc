// Any bytes as a tokenizer spec and a text: refused with a message, or encoded and decoded within
// bounds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "src/tokenizer/detokenizer.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {
namespace {

// Takes fields off the front of the input; an empty one gives zeros and "".
class Input {
 public:
  explicit Input(absl::string_view rest) : rest_(rest) {}
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }
  // One length byte, then the text.
  std::string Text() {
    const uint8_t length = Byte();
    const std::string text(rest_.substr(0, length));
    rest_.remove_prefix(text.size());
    return text;
  }
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

TokenizerSpec ReadSpec(Input* input) {
  static constexpr const char* kNames[] = {"gpt-2",  "smollm",      "llama-bpe",      "qwen2",
                                           "gpt-4o", "deepseek-v3", "deepseek-coder", "?"};
  TokenizerSpec spec;
  const uint8_t flags = input->Byte();
  spec.model = (flags & 1) != 0 ? TokenizerModel::kSpm : TokenizerModel::kBpe;
  spec.add_bos = (flags & 2) != 0;
  spec.add_eos = (flags & 4) != 0;
  spec.add_space_prefix = (flags & 8) != 0;
  spec.remove_extra_whitespaces = (flags & 16) != 0;
  spec.pre_tokenizer = kNames[flags >> 5];
  spec.bos_id = static_cast<int8_t>(input->Byte());
  spec.eos_id = static_cast<int8_t>(input->Byte());
  spec.unknown_id = static_cast<int8_t>(input->Byte());
  const uint8_t num_tokens = input->Byte();
  for (int i = 0; i < num_tokens; ++i) {
    spec.types.push_back(static_cast<TokenType>(input->Byte() % 8));
    if (spec.model == TokenizerModel::kSpm)
      spec.scores.push_back(static_cast<int8_t>(input->Byte()));
    spec.tokens.push_back(input->Text());
  }
  const uint8_t num_merges = input->Byte();
  for (int i = 0; i < num_merges; ++i) spec.merges.push_back(input->Text());
  return spec;
}

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "tokenizer_fuzz: %s\n", what);
  std::abort();
}

void RoundTrip(const Tokenizer& tokenizer, absl::string_view text, const EncodeOptions& options) {
  const auto ids = tokenizer.Encode(text, options);
  if (!ids.ok()) return;
  Detokenizer detokenizer(&tokenizer, true);
  std::string streamed;
  for (int32_t id : *ids) {
    Check(id >= 0 && id < tokenizer.vocab_size(), "an id outside the vocabulary");
    detokenizer.Append(id, &streamed);
    Check(detokenizer.num_pending_bytes() < 4, "more held back than a character");
  }
  detokenizer.Finish(&streamed);
  Check(tokenizer.Decode(*ids, true).ok(), "its own ids do not decode");
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  llm::Input input(absl::string_view(reinterpret_cast<const char*>(data), size));
  const auto tokenizer = llm::Tokenizer::Create(llm::ReadSpec(&input));
  if (!tokenizer.ok()) return 0;
  llm::RoundTrip(**tokenizer, input.rest(), {.add_special = true, .parse_special = true});
  llm::RoundTrip(**tokenizer, input.rest(), {.add_special = false, .parse_special = false});
  (*tokenizer)->FindToken(input.rest());
  return 0;
}
