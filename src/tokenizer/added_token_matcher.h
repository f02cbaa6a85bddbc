// Finds tokens that are written out in a text: control tokens and user-defined ones.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

// By text, and of one text by id.
std::vector<int32_t> SortedByText(const Vocabulary& vocabulary, absl::Span<const int32_t> ids);

class AddedTokenMatcher {
 public:
  // Empty texts never match; of two tokens with one text the lower id does. `vocabulary` outlives
  // the matcher. REQUIRES: `ids` are as SortedByText gives them, or some of those.
  AddedTokenMatcher(const Vocabulary* vocabulary, std::vector<int32_t> ids);

  // The longest token that `text` begins with, or -1.
  int32_t MatchPrefix(absl::string_view text) const;
  // The token whose text is exactly this, or -1.
  int32_t Find(absl::string_view text) const;
  bool empty() const { return ids_.empty(); }
  size_t size_bytes() const { return ids_.capacity() * sizeof(int32_t); }

 private:
  const Vocabulary* vocabulary_;
  std::vector<int32_t> ids_;  // sorted by text
  // ids_[first_[b], first_[b + 1]) begin with byte b: most positions of a text end here.
  std::array<uint32_t, 257> first_;
};

}  // namespace llm
