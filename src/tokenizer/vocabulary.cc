// Resolves stored texts to bytes once, so that encoding and decoding never translate.
#include "src/tokenizer/vocabulary.h"

#include <algorithm>
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

void AppendWithSpaces(absl::string_view text, std::string* out) {
  for (size_t at = text.find(kSpaceMark); at != absl::string_view::npos;
       at = text.find(kSpaceMark)) {
    out->append(text.data(), at);
    out->push_back(' ');
    text.remove_prefix(at + kSpaceMark.size());
  }
  out->append(text.data(), text.size());
}

absl::StatusOr<Vocabulary> Vocabulary::Create(TokenizerSpec* spec) {
  Vocabulary vocabulary(spec->tokens.size());
  LLM_RETURN_IF_ERROR(vocabulary.AppendTexts(*spec));
  LLM_RETURN_IF_ERROR(vocabulary.IndexPieces(*spec));
  LLM_RETURN_IF_ERROR(vocabulary.IndexByteTokens(*spec));
  vocabulary.literal_ = std::vector<bool>();  // `= {}` would keep the memory
  spec->tokens = std::vector<std::string>();
  return vocabulary;
}

absl::Status Vocabulary::AppendTexts(const TokenizerSpec& spec) {
  size_t total = 0;  // no text renders longer than it is stored
  for (const std::string& text : spec.tokens) total += text.size();
  if (total > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer: the token texts have ", total,
                                                   " bytes together, at most ", kMaxTextBytes,
                                                   " are allowed"));
  }
  bytes_.reserve(total);
  offsets_.push_back(0);
  literal_.resize(spec.tokens.size());
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const std::string& text = spec.tokens[id];
    const TokenType type = TypeOf(spec, id);
    if (type == TokenType::kByte) {
      const int byte = ParseByteToken(text);
      if (byte < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("tokenizer: ", DescribeToken(id, text),
                         " is a byte token, but not of the form <0xNN>"));
      }
      bytes_.push_back(static_cast<char>(byte));
    } else if (spec.model != TokenizerModel::kBpe) {
      AppendWithSpaces(text, &bytes_);
    } else if (type != TokenType::kNormal || !DecodeByteAlphabet(text, &bytes_)) {
      literal_[id] = true;
      bytes_ += text;
    }
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  bytes_.shrink_to_fit();
  return absl::OkStatus();
}

bool Vocabulary::InsertPiece(int32_t id, uint64_t hash) {
  const absl::string_view bytes = Bytes(id);
  if (FindHashed(bytes, hash) >= 0) return false;
  index_.Insert(hash, static_cast<uint32_t>(id));
  max_piece_bytes_ = std::max(max_piece_bytes_, bytes.size());
  return true;
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
absl::Status Vocabulary::IndexPieces(const TokenizerSpec& spec) {
  std::array<uint64_t, kHashesAhead> hashes;  // of ids [first, first + kHashesAhead)
  for (int32_t id = 0; id < size(); ++id) {
    const size_t i = static_cast<size_t>(id);
    if (i % kHashesAhead == 0) HashAhead(id, hashes.data());
    if (TypeOf(spec, i) != TokenType::kNormal || literal_[i] || Bytes(id).empty()) continue;
    if (!InsertPiece(id, hashes[i % kHashesAhead])) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer: ", DescribeToken(i, spec.tokens[i]),
                       " has the same text as token ", FindPiece(Bytes(id))));
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
  return FindHashed(bytes, HashBytes(bytes));
}

int32_t Vocabulary::FindHashed(absl::string_view bytes, uint64_t hash) const {
  const uint32_t index = index_.Find(
      hash, [&](uint32_t candidate) { return Bytes(static_cast<int32_t>(candidate)) == bytes; });
  return static_cast<int32_t>(index);  // kNone is -1
}

bool Vocabulary::HasByteIds(absl::string_view bytes) const {
  for (char c : bytes) {
    if (ByteId(static_cast<uint8_t>(c)) < 0) return false;
  }
  return true;
}

size_t Vocabulary::size_bytes() const {
  return bytes_.capacity() + offsets_.capacity() * sizeof(uint32_t) + index_.size_bytes();
}

}  // namespace llm
