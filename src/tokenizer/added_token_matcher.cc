// A sorted list narrowed one byte at a time: as good as a trie for a few thousand tokens, at 4
// bytes each.
#include "src/tokenizer/added_token_matcher.h"

#include <algorithm>
#include <utility>

namespace llm {
namespace {

// Some models reserve thousands of tokens, whose texts lie all over the vocabulary: the first bytes
// of nearly all of them decide here.
struct SortKey {
  uint64_t head[2];  // the first 16 bytes as big-endian numbers, zeros behind a shorter text
  int32_t id;
};

uint64_t BigEndian(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) {
    number = number << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0u);
  }
  return number;
}

}  // namespace

std::vector<int32_t> SortedByText(const Vocabulary& vocabulary, absl::Span<const int32_t> ids) {
  std::vector<SortKey> keys;
  keys.reserve(ids.size());
  for (const int32_t id : ids) {
    const absl::string_view bytes = vocabulary.Bytes(id);
    keys.push_back(
        {{BigEndian(bytes), BigEndian(bytes.substr(std::min<size_t>(8, bytes.size())))}, id});
  }
  std::sort(keys.begin(), keys.end(), [&](const SortKey& a, const SortKey& b) {
    if (a.head[0] != b.head[0]) return a.head[0] < b.head[0];
    if (a.head[1] != b.head[1]) return a.head[1] < b.head[1];
    return std::make_pair(vocabulary.Bytes(a.id), a.id) <
           std::make_pair(vocabulary.Bytes(b.id), b.id);
  });
  std::vector<int32_t> sorted;
  sorted.reserve(keys.size());
  for (const SortKey& key : keys) sorted.push_back(key.id);
  return sorted;
}

AddedTokenMatcher::AddedTokenMatcher(const Vocabulary* vocabulary, std::vector<int32_t> ids)
    : vocabulary_(vocabulary), ids_(std::move(ids)) {
  const auto bytes = [this](int32_t id) { return vocabulary_->Bytes(id); };
  ids_.erase(std::unique(ids_.begin(), ids_.end(),
                         [&](int32_t a, int32_t b) { return bytes(a) == bytes(b); }),
             ids_.end());
  if (!ids_.empty() && bytes(ids_.front()).empty()) ids_.erase(ids_.begin());
  ids_.shrink_to_fit();
  first_.fill(0);
  for (int32_t id : ids_) ++first_[static_cast<uint8_t>(bytes(id)[0]) + 1u];
  for (size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

int32_t AddedTokenMatcher::MatchPrefix(absl::string_view text) const {
  if (text.empty()) return -1;
  auto begin = ids_.begin() + first_[static_cast<uint8_t>(text[0])];
  auto end = ids_.begin() + first_[static_cast<uint8_t>(text[0]) + 1u];
  int32_t longest = -1;
  // Invariant: [begin, end) are the tokens that share their first `length` bytes with the text.
  for (size_t length = 1; begin != end; ++length) {
    if (vocabulary_->Bytes(*begin).size() == length) longest = *begin++;
    if (length == text.size()) break;
    const uint8_t next = static_cast<uint8_t>(text[length]);
    const auto byte_at = [&](int32_t id) {
      return static_cast<uint8_t>(vocabulary_->Bytes(id)[length]);
    };
    begin = std::partition_point(begin, end, [&](int32_t id) { return byte_at(id) < next; });
    end = std::partition_point(begin, end, [&](int32_t id) { return byte_at(id) == next; });
  }
  return longest;
}

int32_t AddedTokenMatcher::Find(absl::string_view text) const {
  const int32_t id = MatchPrefix(text);
  return id >= 0 && vocabulary_->Bytes(id).size() == text.size() ? id : -1;
}

}  // namespace llm
