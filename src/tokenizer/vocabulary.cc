// Resolves stored texts to bytes once, so that encoding and decoding never translate.
#include "src/tokenizer/vocabulary.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/byte_alphabet.h"
#include "src/tokenizer/tokenizer_spec_check.h"

namespace llm {
namespace {

uint64_t HashBytes(absl::string_view bytes) { return absl::Hash<absl::string_view>{}(bytes); }

constexpr absl::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

constexpr size_t kNoByte = 256;

bool StartsWithSpaceMark(absl::string_view text) {
  return text.size() >= kSpaceMark.size() && text[0] == kSpaceMark[0] && text[1] == kSpaceMark[1] &&
         text[2] == kSpaceMark[2];
}

// Returns the size. Sets pairs[a * 256 + b] for each byte b behind an a, and behind kNoByte in
// front. One pass for both: what texts this short cost is the end of a loop.
size_t CopyWithSpaces(absl::string_view text, char* to, uint8_t* pairs) {
  const char* begin = to;
  size_t before = kNoByte;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == kSpaceMark[0] && StartsWithSpaceMark(text.substr(at))) {
      c = ' ';
      at += kSpaceMark.size() - 1;
    }
    *to++ = c;
    const size_t byte = static_cast<uint8_t>(c);
    pairs[before * 256 + byte] = 1;
    before = byte;
  }
  return static_cast<size_t>(to - begin);
}

// The byte of "<0xNN>", or -1.
int ParseByteToken(absl::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int byte = 0;
  for (char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

}  // namespace

size_t DecodeSpaceMarks(absl::string_view text, char* to) {
  const char* begin = to;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool mark = StartsWithSpaceMark(text.substr(at));
    *to++ = mark ? ' ' : text[at];
    if (mark) at += kSpaceMark.size() - 1;
  }
  return static_cast<size_t>(to - begin);
}

absl::StatusOr<Vocabulary> Vocabulary::Create(const TokenizerSpec& spec, const TextList& tokens) {
  Vocabulary vocabulary(tokens.size());
  LLM_RETURN_IF_ERROR(vocabulary.AppendTexts(spec, tokens));
  LLM_RETURN_IF_ERROR(vocabulary.IndexPieces(spec, tokens));
  LLM_RETURN_IF_ERROR(vocabulary.IndexByteTokens(spec));
  vocabulary.literal_ = std::vector<bool>();  // `= {}` would keep the memory
  return vocabulary;
}

absl::Status Vocabulary::AppendTexts(const TokenizerSpec& spec, const TextList& tokens) {
  const size_t total = tokens.num_text_bytes();  // no text renders longer than it is stored
  if (total > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer: the token texts have ", total,
                                                   " bytes together, at most ", kMaxTextBytes,
                                                   " are allowed"));
  }
  bytes_ = std::make_unique_for_overwrite<char[]>(total);
  reserved_bytes_ = total;
  offsets_.push_back(0);
  literal_.resize(tokens.size());
  // Pairs as a byte each: a bit would have to be read before it is set.
  std::vector<uint8_t> found((kNoByte + 1) * 256);
  for (const absl::string_view text : tokens) {
    LLM_ASSIGN_OR_RETURN(const size_t size,
                         AppendText(spec, offsets_.size() - 1, text, found.data()));
    offsets_.push_back(offsets_.back() + static_cast<uint32_t>(size));
  }
  for (size_t pair = 0; pair < pairs_.size(); ++pair) pairs_[pair] = found[pair] != 0;
  return absl::OkStatus();
}

absl::StatusOr<size_t> Vocabulary::AppendText(const TokenizerSpec& spec, size_t id,
                                              absl::string_view text, uint8_t* pairs) {
  char* to = bytes_.get() + offsets_.back();
  const TokenType type = TypeOf(spec, id);
  if (type == TokenType::kByte) {
    const int byte = ParseByteToken(text);
    if (byte < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tokenizer: ", DescribeToken(id, text), " is a byte token, but not of the form <0xNN>"));
    }
    *to = static_cast<char>(byte);
    return 1;
  }
  if (spec.model != TokenizerModel::kBpe) return CopyWithSpaces(text, to, pairs);
  if (type == TokenType::kNormal) {
    if (const auto size = DecodeByteAlphabet(text, to); size.has_value()) return *size;
  }
  literal_[id] = true;
  return text.copy(to, text.size());
}

int32_t Vocabulary::InsertPiece(int32_t id, uint64_t hash) {
  const absl::string_view bytes = Bytes(id);
  const uint32_t other = index_.FindOrInsert(
      hash, static_cast<uint32_t>(id),
      [&](uint32_t candidate) { return Bytes(static_cast<int32_t>(candidate)) == bytes; });
  if (other == IndexTable::kNone) {
    max_piece_bytes_ = std::max(max_piece_bytes_, bytes.size());
    is_piece_[static_cast<size_t>(id)] = true;
  }
  return static_cast<int32_t>(other);  // kNone is -1
}

// Slots lie all over a table that no cache holds: fetching some at once hides the wait.
void Vocabulary::HashAhead(int32_t first, uint64_t* hashes) const {
  const int32_t end = std::min(size(), first + static_cast<int32_t>(kHashesAhead));
  for (int32_t id = first; id < end; ++id) {
    hashes[id - first] = HashBytes(Bytes(id));
    index_.Prefetch(hashes[id - first]);
  }
}

// Normal tokens first: a user-defined or unused one of the same bytes is not what merging means.
absl::Status Vocabulary::IndexPieces(const TokenizerSpec& spec, const TextList& tokens) {
  std::array<uint64_t, kHashesAhead> hashes;  // of ids [first, first + kHashesAhead)
  for (int32_t id = 0; id < size(); ++id) {
    const size_t i = static_cast<size_t>(id);
    if (i % kHashesAhead == 0) HashAhead(id, hashes.data());
    if (TypeOf(spec, i) != TokenType::kNormal || literal_[i] || Bytes(id).empty()) continue;
    const int32_t other = InsertPiece(id, hashes[i % kHashesAhead]);
    if (other >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer: ", DescribeToken(i, *std::next(tokens.begin(), id)),
                       " has the same text as token ", other));
    }
  }
  for (int32_t id = 0; id < size(); ++id) {
    const TokenType type = TypeOf(spec, static_cast<size_t>(id));
    // SentencePiece merges through unused tokens and splits them again; byte-level BPE knows none.
    const bool wanted = type == TokenType::kUserDefined ||
                        (type == TokenType::kUnused && spec.model == TokenizerModel::kSpm);
    if (wanted && !Bytes(id).empty()) InsertPiece(id, HashBytes(Bytes(id)));
  }
  return absl::OkStatus();
}

absl::Status Vocabulary::IndexByteTokens(const TokenizerSpec& spec) {
  if (spec.model == TokenizerModel::kBpe) {
    for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      const char c = static_cast<char>(byte);
      byte_ids_[byte] = FindPiece(absl::string_view(&c, 1));
    }
    return absl::OkStatus();
  }
  for (int32_t id = 0; id < size(); ++id) {
    if (TypeOf(spec, static_cast<size_t>(id)) != TokenType::kByte) continue;
    const uint8_t byte = static_cast<uint8_t>(Bytes(id)[0]);
    if (byte_ids_[byte] >= 0) {
      return absl::InvalidArgumentError(absl::StrCat("tokenizer: tokens ", byte_ids_[byte], " and ",
                                                     id, " are the same byte token"));
    }
    byte_ids_[byte] = id;
  }
  return absl::OkStatus();
}

int32_t Vocabulary::FindPiece(absl::string_view bytes) const {
  const uint32_t index = index_.Find(HashBytes(bytes), [&](uint32_t candidate) {
    return Bytes(static_cast<int32_t>(candidate)) == bytes;
  });
  return static_cast<int32_t>(index);  // kNone is -1
}

int32_t Vocabulary::FindPiece(absl::string_view bytes, int32_t guess) const {
  const bool is_it = guess >= 0 && guess < size() && is_piece_[static_cast<size_t>(guess)] &&
                     Bytes(guess) == bytes;
  return is_it ? guess : FindPiece(bytes);
}

bool Vocabulary::HasByteIds(absl::string_view bytes) const {
  for (char c : bytes) {
    if (ByteId(static_cast<uint8_t>(c)) < 0) return false;
  }
  return true;
}

size_t Vocabulary::size_bytes() const {
  return reserved_bytes_ + offsets_.capacity() * sizeof(uint32_t) + is_piece_.capacity() / 8 +
         index_.size_bytes();
}

}  // namespace llm
