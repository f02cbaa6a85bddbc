// Texts are looked up once, here; encoding compares ids only.
#include "src/tokenizer/bpe_merges.h"

#include "absl/hash/hash.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/byte_alphabet.h"

namespace llm {
namespace {

// A product with a 64-bit odd constant moves every bit of both ids into the upper half, which the
// table reads. The seed is what the writer of a file cannot know: it could choose ids that collide.
uint64_t HashPair(uint64_t seed, int32_t left, int32_t right) {
  uint64_t key =
      (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  key ^= seed;
  key ^= key >> 29;
  key *= 0x9E3779B97F4A7C15u;
  key ^= key >> 32;
  return key * 0xD6E8FEB86659FD93u;
}

absl::Status MergeError(size_t rank, absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer: merge ", rank, " (\"",
                                                 absl::CEscape(text.substr(0, 80)), "\") ", what));
}

std::optional<size_t> Decode(MergeTexts texts, absl::string_view text, char* bytes) {
  if (texts == MergeTexts::kByteAlphabet) return DecodeByteAlphabet(text, bytes);
  return DecodeSpaceMarks(text, bytes);
}

// `bytes` is memory that one merge after the other uses; `guess` may be the id of what it gives.
absl::StatusOr<BpeMerge> ParseMerge(const Vocabulary& vocabulary, size_t rank,
                                    absl::string_view text, MergeTexts texts, int32_t guess,
                                    std::string* bytes) {
  const size_t space = text.find(' ');
  if (space == absl::string_view::npos || space == 0 || space + 1 == text.size() ||
      text.find(' ', space + 1) != absl::string_view::npos) {
    return MergeError(rank, text, "is not two texts with one space between them");
  }
  if (bytes->size() < text.size()) bytes->resize(text.size());
  const auto left_size = Decode(texts, text.substr(0, space), bytes->data());
  const auto right_size =
      Decode(texts, text.substr(space + 1), bytes->data() + left_size.value_or(0));
  if (!left_size.has_value() || !right_size.has_value()) {
    return MergeError(rank, text, "has a character outside the byte alphabet");
  }
  const absl::string_view view(bytes->data(), *left_size + *right_size);
  const BpeMerge merge = {vocabulary.FindPiece(view.substr(0, *left_size)),
                          vocabulary.FindPiece(view.substr(*left_size)),
                          vocabulary.FindPiece(view, guess)};
  if (merge.left < 0) return MergeError(rank, text, "names no token on its left");
  if (merge.right < 0) return MergeError(rank, text, "names no token on its right");
  if (merge.result < 0) return MergeError(rank, text, "gives no token");
  return merge;
}

}  // namespace

absl::StatusOr<BpeMerges> BpeMerges::Create(const Vocabulary& vocabulary, const TextList& merges,
                                            MergeTexts texts) {
  BpeMerges result(merges.size());
  result.seed_ = absl::Hash<size_t>{}(merges.size());  // of this process: it begins at an address
  std::string bytes;
  for (const absl::string_view text : merges) {
    const size_t rank = result.merges_.size();
    // Most vocabularies are in the order in which merging made them.
    const int32_t guess = rank > 0 ? result.merges_.back().result + 1 : 0;
    LLM_ASSIGN_OR_RETURN(const BpeMerge merge,
                         ParseMerge(vocabulary, rank, text, texts, guess, &bytes));
    result.merges_.push_back(merge);
    result.index_.FindOrInsert(
        HashPair(result.seed_, merge.left, merge.right), static_cast<uint32_t>(rank),
        [&](uint32_t other) { return result.Joins(other, merge.left, merge.right); });
  }
  return result;
}

uint32_t BpeMerges::FindRank(int32_t left, int32_t right) const {
  return index_.Find(HashPair(seed_, left, right),
                     [&](uint32_t rank) { return Joins(rank, left, right); });
}

}  // namespace llm
