// The tokens of a model: the bytes that each id stands for, and the id of given bytes.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/base/text_list.h"
#include "src/tokenizer/index_table.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

// Holds one copy of all texts, as the bytes they render to: the byte alphabet and U+2581 are
// resolved here and nowhere else.
class Vocabulary {
 public:
  // `tokens` are the texts, needed during the call alone. REQUIRES: CheckTokenizerSpec is OK.
  static absl::StatusOr<Vocabulary> Create(const TokenizerSpec& spec, const TextList& tokens);

  int32_t size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  absl::string_view Bytes(int32_t id) const {
    const size_t begin = offsets_[static_cast<size_t>(id)];
    return {bytes_.get() + begin, offsets_[static_cast<size_t>(id) + 1] - begin};
  }
  // The piece that merging may produce, or -1. Control, unknown and byte tokens are no pieces: text
  // never becomes one.
  int32_t FindPiece(absl::string_view bytes) const;
  // The same, sooner where `guess`, any number, is it.
  int32_t FindPiece(absl::string_view bytes, int32_t guess) const;
  // The token of one byte, used where no piece covers it; -1 when there is none.
  int32_t ByteId(uint8_t byte) const { return byte_ids_[byte]; }
  // True when every byte of `bytes` has a token.
  bool HasByteIds(absl::string_view bytes) const;
  size_t max_piece_bytes() const { return max_piece_bytes_; }
  // Whether some token has byte `second` right behind `first`. kSpm only.
  bool HasPair(uint8_t first, uint8_t second) const { return pairs_[first * 256u + second]; }
  size_t size_bytes() const;

 private:
  explicit Vocabulary(size_t num_tokens) : index_(num_tokens), is_piece_(num_tokens) {
    byte_ids_.fill(-1);
    offsets_.reserve(num_tokens + 1);
  }
  absl::Status AppendTexts(const TokenizerSpec& spec, const TextList& tokens);
  // Returns how many bytes it has become.
  absl::StatusOr<size_t> AppendText(const TokenizerSpec& spec, size_t id, absl::string_view text,
                                    uint8_t* pairs);
  absl::Status IndexPieces(const TokenizerSpec& spec, const TextList& tokens);
  absl::Status IndexByteTokens(const TokenizerSpec& spec);
  static constexpr size_t kHashesAhead = 16;
  void HashAhead(int32_t first, uint64_t* hashes) const;
  // The piece of the same bytes that is there already, or -1.
  int32_t InsertPiece(int32_t id, uint64_t hash);

  std::unique_ptr<char[]> bytes_;  // all tokens, one after the other
  size_t reserved_bytes_ = 0;      // behind its end they are never touched
  std::vector<uint32_t> offsets_;  // [size + 1]
  IndexTable index_;
  std::vector<bool> is_piece_;    // by id
  std::bitset<256 * 256> pairs_;  // by first * 256 + second
  std::array<int32_t, 256> byte_ids_;
  std::vector<bool> literal_;  // kBpe, while building: the text is not of the byte alphabet
  size_t max_piece_bytes_ = 0;
};

// Writes `text` with U+2581 as spaces, at most text.size() bytes, and returns how many.
size_t DecodeSpaceMarks(absl::string_view text, char* to);

inline TokenType TypeOf(const TokenizerSpec& spec, size_t id) {
  return spec.types.empty() ? TokenType::kNormal : spec.types[id];
}

}  // namespace llm
