// What a tokenizer is made from, free of any file format. The engine fills it from GGUF metadata or
// tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/text_list.h"

namespace llm {

enum class TokenizerModel {
  kBpe,
  kSpm
};  // byte-level BPE with merges; SentencePiece BPE with scores and byte fallback

enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct TokenizerSpec {
  TokenizerModel model = TokenizerModel::kBpe;
  std::string pre_tokenizer;  // BPE: GGUF's tokenizer.ggml.pre ("smollm", "llama-bpe", "qwen2",
                              // "gpt-2", "default", ...)
  std::vector<std::string>
      tokens;  // as stored: byte-level alphabet for kBpe, U+2581 for spaces in kSpm
  std::vector<TokenType> types;     // empty: all normal
  std::vector<float> scores;        // kSpm only
  std::vector<std::string> merges;  // kBpe only: "left right"
  int32_t bos_id = -1;
  int32_t eos_id = -1;
  int32_t unknown_id = -1;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;  // kSpm
  bool remove_extra_whitespaces = false;
};

// A spec's tokens and merges where they lie already, such as in a file's header.
struct TokenizerTexts {
  TextList tokens;
  TextList merges;
};

}  // namespace llm
