// Keys of dicts: which values may be one, and when two are the same.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/value.h"

namespace llm::jinja {

// One text for all keys that Python holds to be equal (1, 1.0 and True). INVALID_ARGUMENT for what
// has no hash.
absl::StatusOr<std::string> EncodeKey(const Value& key);

// Adds or replaces; a replaced key keeps its place. Bytes are the caller's to charge
// (kDictEntryBytes and the key).
inline constexpr uint64_t kDictEntryBytes = 192;
absl::Status SetEntry(Dict* dict, Value key, Value value);

// nullptr when there is no such key, or when `key` cannot be one.
const Value* FindEntry(const Dict& dict, const Value& key);
const Value* FindEntry(const Dict& dict, absl::string_view key);

}  // namespace llm::jinja
