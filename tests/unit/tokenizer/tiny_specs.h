// Small tokenizer specs, made by hand, that the tests of this folder start from.
#pragma once

#include <string>
#include <utility>

#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

inline void AddToken(const std::string& text, TokenType type, float score, TokenizerSpec* spec) {
  spec->tokens.push_back(text);
  spec->types.push_back(type);
  if (spec->model == TokenizerModel::kSpm) spec->scores.push_back(score);
}

// Ids 0 to 94: '!' to '~' and the space ("\u0120"). Then bos 95, eos 96 and a user-defined
// "<tool>" 97.
inline TokenizerSpec TinyBpeSpec() {
  TokenizerSpec spec;
  spec.pre_tokenizer = "gpt-2";
  for (char c = '!'; c <= '~'; ++c) AddToken(std::string(1, c), TokenType::kNormal, 0, &spec);
  AddToken("\xC4\xA0", TokenType::kNormal, 0, &spec);
  AddToken("<s>", TokenType::kControl, 0, &spec);
  AddToken("</s>", TokenType::kControl, 0, &spec);
  AddToken("<tool>", TokenType::kUserDefined, 0, &spec);
  spec.bos_id = 95;
  spec.eos_id = 96;
  return spec;
}

// Adds a merge and the token that it gives; returns the token's id.
inline int32_t AddMerge(const std::string& left, const std::string& right, TokenizerSpec* spec) {
  AddToken(left + right, TokenType::kNormal, 0, spec);
  spec->merges.push_back(left + " " + right);
  return static_cast<int32_t>(spec->tokens.size()) - 1;
}

// Ids: unk 0, bos 1, eos 2, bytes 3 to 258 (only with `byte_tokens`); pieces are for the test to
// add.
inline TokenizerSpec TinySpmSpec(bool byte_tokens) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kSpm;
  AddToken("<unk>", TokenType::kUnknown, 0, &spec);
  AddToken("<s>", TokenType::kControl, 0, &spec);
  AddToken("</s>", TokenType::kControl, 0, &spec);
  for (int byte = 0; byte_tokens && byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    AddToken(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", TokenType::kByte, 0,
             &spec);
  }
  spec.unknown_id = 0;
  spec.bos_id = 1;
  spec.eos_id = 2;
  spec.add_space_prefix = false;
  return spec;
}

inline int32_t AddPiece(const std::string& text, float score, TokenizerSpec* spec) {
  AddToken(text, TokenType::kNormal, score, spec);
  return static_cast<int32_t>(spec->tokens.size()) - 1;
}

}  // namespace llm
