// What filters over sequences share: sorting and the lookup of attributes by path.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/tokenizer/jinja/runtime.h"

namespace llm::jinja {

// Follows "a.b.0", or an integer index, from `value`. An absent path (null) is the value itself.
absl::StatusOr<Value> GetPath(Runtime& runtime, const Value& value, const Value* path);

// Text in lower case unless `case_sensitive`; other values unchanged: the key that Jinja sorts by.
absl::StatusOr<Value> SortKey(Runtime& runtime, const Value& value, bool case_sensitive);

struct Keyed {
  Value key;
  Value value;
};

// Stable, also when reversed.
absl::Status SortByKey(Runtime& runtime, bool reverse, std::vector<Keyed>* items);

std::vector<Value> ValuesOf(std::vector<Keyed> items);

}  // namespace llm::jinja
