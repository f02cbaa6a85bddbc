// What a tokenizer is made from, free of any file format. The engine fills it from GGUF metadata or
// tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/text_list.h"

namespace llm {

enum class TokenizerModel {
  kBpe,      // byte-level, with merges
  kSpm,      // SentencePiece BPE: characters, with scores and byte fallback
  kCharBpe,  // characters as kSpm's, with merges; byte fallback where there are byte tokens
};

enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

// How a text is cut before merging, spelled out. GGUF files name a rule instead.
struct SplitRule {
  std::vector<std::string> patterns;  // PCRE2; each match, and what lies between, becomes a piece
  bool normalize_to_nfc = false;
  bool prefer_whole_pieces = false;  // a piece that is a token is taken whole
};

// kCharBpe: where a space is put before a text.
enum class SpacePrefix : uint8_t {
  kNever = 0,
  kAlways = 1,       // before each run between control tokens
  kUnlessSpace = 2,  // likewise, unless it begins with one
  kFirst = 3,        // likewise, at the beginning of the input alone
};

// Of a control token that is written out: white space beside it belongs to it.
inline constexpr uint8_t kStripsLeft = 1;
inline constexpr uint8_t kStripsRight = 2;

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
  bool spells_rule = false;  // split_rule counts, not pre_tokenizer; always for kCharBpe
  SplitRule split_rule;
  SpacePrefix space_prefix = SpacePrefix::kNever;
  bool fuse_unknown = false;    // kCharBpe: one unknown token for a run of unknown characters
  std::vector<uint8_t> strips;  // by id, kStripsLeft | kStripsRight; empty: none
};

// A spec's tokens and merges where they lie already, such as in a file's header.
struct TokenizerTexts {
  TextList tokens;
  TextList merges;
};

}  // namespace llm
