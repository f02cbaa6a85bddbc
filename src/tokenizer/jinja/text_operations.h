// Cutting and replacing text, shared by filters and methods. Sizes of results are charged before
// they are made.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/runtime.h"

namespace llm::jinja {

// Where `wanted` begins in `text`, or npos. Linear time whatever the texts are (absl's find is
// not).
size_t FindText(absl::string_view text, absl::string_view wanted);

// str.replace; a negative count replaces all.
absl::StatusOr<std::string> ReplaceText(Runtime& runtime, absl::string_view text,
                                        absl::string_view old_text, absl::string_view new_text,
                                        int64_t count);

// `replaced`, the text that ReplaceText made of `self` (a negative count: of all), marked as its
// parts are in `self` and `new_value`.
absl::StatusOr<Value> NewReplaced(Runtime& runtime, const Value& self, absl::string_view old_text,
                                  const Value& new_value, int64_t count, std::string replaced,
                                  bool markup);

// The parts below are views of 16 bytes each; a text of separators only would have far more of them
// than bytes.
absl::Status ChargeParts(Runtime& runtime, absl::string_view text, absl::string_view separator);

// str.split with a separator, at most `limit` cuts (negative: all). REQUIRES: the separator is not
// empty.
std::vector<absl::string_view> SplitText(absl::string_view text, absl::string_view separator,
                                         int64_t limit, bool from_right);

// str.split at runs of white space.
std::vector<absl::string_view> SplitSpace(absl::string_view text, int64_t limit, bool from_right);

std::vector<absl::string_view> SplitLines(absl::string_view text, bool keep_ends);

// The parts of the text of `self`, as a list.
absl::StatusOr<Value> TextList(Runtime& runtime, const Value& self,
                               const std::vector<absl::string_view>& parts);

std::string Capitalize(absl::string_view text);

}  // namespace llm::jinja
