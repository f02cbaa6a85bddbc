// A tokenizer of 64 tokens: letters and digits one character each, a two-part character, and an end
// token.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm {

inline constexpr int32_t kFakeVocab = 64;
inline constexpr int32_t kFakeEnd = 63;         // control
inline constexpr int32_t kFakeAccentLead = 61;  // C3: with the next one, "e" with an acute accent
inline constexpr int32_t kFakeAccentTail = 62;  // A9

class FakeTokenizer : public Tokenizer {
 public:
  FakeTokenizer() : Tokenizer(MakeSpec()) {}

  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text,
                                              const EncodeOptions&) const override {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(FindToken(absl::string_view(&c, 1)));
    return ids;
  }
  absl::string_view TokenBytes(int32_t id, bool render_special) const override {
    if (id == kFakeEnd && !render_special) return "";
    return spec_.tokens[static_cast<size_t>(id)];
  }
  int32_t FindToken(absl::string_view text) const override {
    for (size_t i = 0; i < spec_.tokens.size(); ++i) {
      if (absl::string_view(spec_.tokens[i]) == text) return static_cast<int32_t>(i);
    }
    return -1;
  }
  std::vector<int32_t> Ids(absl::string_view text) const { return *Encode(text, EncodeOptions()); }

 private:
  static TokenizerSpec MakeSpec() {
    const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567 ";
    TokenizerSpec spec;
    for (const char c : letters) spec.tokens.push_back(std::string(1, c));
    spec.tokens.push_back("\xc3");
    spec.tokens.push_back("\xa9");
    spec.tokens.push_back("<end>");
    spec.types.assign(spec.tokens.size(), TokenType::kNormal);
    spec.types.back() = TokenType::kControl;
    spec.eos_id = kFakeEnd;
    return spec;
  }
};

}  // namespace llm
