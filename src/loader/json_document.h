// JSON of a model directory, as one flat list of values: bounded in depth and number, and nothing
// recurses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llm {

struct JsonLimits {
  uint32_t max_depth = 64;
  uint64_t max_values = 1u << 23;  // 24 bytes each; a vocabulary of 262,144 tokens takes 2 million
};

enum class JsonType : uint32_t { kNull, kBool, kInt, kFloat, kString, kArray, kObject };

class JsonDocument;

// One value, or none: a missing member. A view into its document, which outlives it and stays where
// it is.
class JsonValue {
 public:
  JsonValue() = default;

  bool exists() const { return document_ != nullptr; }
  bool Is(JsonType type) const { return exists() && this->type() == type; }
  bool is_null() const { return Is(JsonType::kNull); }
  JsonType type() const;       // REQUIRES: exists()
  uint32_t num_items() const;  // of an array or an object

  // INVALID_ARGUMENT "expected a number, is a string" when it is of another type or missing.
  absl::StatusOr<bool> GetBool() const;
  absl::StatusOr<int64_t> GetInt() const;  // 3.0 is one
  absl::StatusOr<double> GetFloat() const;
  absl::StatusOr<absl::string_view> GetString() const;
  absl::Status CheckType(JsonType wanted) const;

  // Of an object; of none when this is no object.
  JsonValue Find(absl::string_view key) const;

  // Children one after the other: for (auto v = array.first(); v.exists(); v = v.next()). Of none
  // there is none.
  JsonValue first() const;
  JsonValue next() const;
  absl::string_view key() const;  // "" for what is no member of an object

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument* document, uint32_t index, uint32_t parent_end, bool member)
      : document_(document), index_(index), parent_end_(parent_end), member_(member) {}

  const JsonDocument* document_ = nullptr;
  uint32_t index_ = 0;
  uint32_t parent_end_ = 0;  // index behind the last sibling
  bool member_ = false;      // of an object: its key lies right before it
};

class JsonDocument {
 public:
  // INVALID_ARGUMENT with the byte where `text` is no JSON, or naming a key that an object of up to
  // 4,096 members has twice; RESOURCE_EXHAUSTED for a limit.
  static absl::StatusOr<JsonDocument> Parse(absl::string_view text, const JsonLimits& limits = {});

  JsonValue root() const;

 private:
  friend class JsonValue;
  friend class JsonBuilder;
  struct Node {
    JsonType type;
    uint32_t end;  // index behind the last value inside; of a key and a plain value the next one
    union {
      int64_t integer;
      double real;
      uint64_t text;  // offset
    };
    uint64_t size;  // of a text in bytes, of the others in items
  };

  absl::string_view Text(const Node& node) const {
    return absl::string_view(texts_).substr(node.text, node.size);
  }

  std::vector<Node> nodes_;  // an object's members are pairs: a text (the key), then the value
  std::string texts_;
};

// "a string", for messages.
const char* JsonTypeName(JsonType type);

}  // namespace llm
