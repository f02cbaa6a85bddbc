// The parser's events append to the list; what is open is a stack of indices.
#include "src/loader/json_document.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"

namespace llm {

// Receives nlohmann's events; a false return stops the parser, and `status` says why.
class JsonBuilder {
 public:
  using number_integer_t = int64_t;
  using number_unsigned_t = uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  explicit JsonBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() { return Add(JsonType::kNull) != nullptr; }
  bool boolean(bool value) { return AddInt(JsonType::kBool, value ? 1 : 0); }
  bool number_integer(number_integer_t value) { return AddInt(JsonType::kInt, value); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > INT64_MAX) return AddFloat(static_cast<double>(value));
    return AddInt(JsonType::kInt, static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) { return AddFloat(value); }
  bool string(string_t& value) { return AddText(value); }
  bool binary(binary_t&) { return false; }
  bool key(string_t& name) {
    ++document_.nodes_[open_.back()].size;
    return AddText(name);
  }
  bool start_object(std::size_t) { return Open(JsonType::kObject); }
  bool start_array(std::size_t) { return Open(JsonType::kArray); }
  bool end_array() {
    Close();
    return true;
  }
  bool end_object() {
    const uint32_t object = open_.back();
    Close();
    return CheckKeys(object);
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("no JSON at byte ", position)));
  }

  const absl::Status& status() const { return status_; }
  JsonDocument Take() { return std::move(document_); }

 private:
  using Node = JsonDocument::Node;

  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  Node* Add(JsonType type) {
    if (document_.nodes_.size() >= limits_.max_values) {
      Fail(absl::ResourceExhaustedError(
          absl::StrCat("JSON of more than ", limits_.max_values, " values")));
      return nullptr;
    }
    if (!open_.empty() && document_.nodes_[open_.back()].type == JsonType::kArray) {
      ++document_.nodes_[open_.back()].size;
    }
    const auto end = static_cast<uint32_t>(document_.nodes_.size() + 1);
    document_.nodes_.push_back({.type = type, .end = end, .integer = 0, .size = 0});
    return &document_.nodes_.back();
  }

  bool AddInt(JsonType type, int64_t value) {
    Node* node = Add(type);
    if (node != nullptr) node->integer = value;
    return node != nullptr;
  }

  bool AddFloat(double value) {
    Node* node = Add(JsonType::kFloat);
    if (node != nullptr) node->real = value;
    return node != nullptr;
  }

  bool AddText(const std::string& value) {
    Node* node = Add(JsonType::kString);
    if (node == nullptr) return false;
    node->text = document_.texts_.size();
    node->size = value.size();
    document_.texts_ += value;
    return true;
  }

  bool Open(JsonType type) {
    if (open_.size() >= limits_.max_depth) {
      return Fail(
          absl::ResourceExhaustedError(absl::StrCat("JSON nests deeper than ", limits_.max_depth)));
    }
    if (Add(type) == nullptr) return false;
    open_.push_back(static_cast<uint32_t>(document_.nodes_.size() - 1));
    return true;
  }

  void Close() {
    document_.nodes_[open_.back()].end = static_cast<uint32_t>(document_.nodes_.size());
    open_.pop_back();
  }

  // Larger objects are tables (of tokens, of tensors), whose readers find what is there twice.
  bool CheckKeys(uint32_t object) {
    constexpr uint64_t kMostMembers = 4096;
    const std::vector<Node>& nodes = document_.nodes_;
    if (nodes[object].size > kMostMembers) return true;
    std::vector<absl::string_view> keys;
    for (uint32_t at = object + 1; at < nodes[object].end; at = nodes[at + 1].end) {
      keys.push_back(document_.Text(nodes[at]));
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    return twice == keys.end() || Fail(absl::InvalidArgumentError(
                                      absl::StrCat("key ", Printable(*twice), ": there twice")));
  }

  const JsonLimits limits_;
  JsonDocument document_;
  std::vector<uint32_t> open_;
  absl::Status status_;
};

absl::StatusOr<JsonDocument> JsonDocument::Parse(absl::string_view text, const JsonLimits& limits) {
  // The parser takes a zero byte for the end.
  if (const size_t zero = text.find('\0'); zero != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("no JSON at byte ", zero));
  }
  JsonBuilder builder(limits);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  LLM_RETURN_IF_ERROR(builder.status());
  if (!parsed) return absl::InvalidArgumentError("no JSON");
  return builder.Take();
}

JsonValue JsonDocument::root() const {
  if (nodes_.empty()) return {};
  return JsonValue(this, 0, static_cast<uint32_t>(nodes_.size()), false);
}

JsonType JsonValue::type() const { return document_->nodes_[index_].type; }

uint32_t JsonValue::num_items() const {
  if (!Is(JsonType::kArray) && !Is(JsonType::kObject)) return 0;
  return static_cast<uint32_t>(document_->nodes_[index_].size);
}

absl::Status JsonValue::CheckType(JsonType wanted) const {
  if (!exists()) return absl::InvalidArgumentError("missing");
  if (type() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", JsonTypeName(wanted), ", is ", JsonTypeName(type())));
}

absl::StatusOr<bool> JsonValue::GetBool() const {
  LLM_RETURN_IF_ERROR(CheckType(JsonType::kBool));
  return document_->nodes_[index_].integer != 0;
}

absl::StatusOr<int64_t> JsonValue::GetInt() const {
  constexpr double kExact = 9007199254740992.0;  // 2^53: up to there every integer is a double
  if (Is(JsonType::kFloat)) {
    const double value = document_->nodes_[index_].real;
    if (std::abs(value) <= kExact && value == std::floor(value)) return static_cast<int64_t>(value);
  }
  LLM_RETURN_IF_ERROR(CheckType(JsonType::kInt));
  return document_->nodes_[index_].integer;
}

absl::StatusOr<double> JsonValue::GetFloat() const {
  if (Is(JsonType::kInt)) return static_cast<double>(document_->nodes_[index_].integer);
  LLM_RETURN_IF_ERROR(CheckType(JsonType::kFloat));
  return document_->nodes_[index_].real;
}

absl::StatusOr<absl::string_view> JsonValue::GetString() const {
  LLM_RETURN_IF_ERROR(CheckType(JsonType::kString));
  return document_->Text(document_->nodes_[index_]);
}

JsonValue JsonValue::Find(absl::string_view key) const {
  if (!Is(JsonType::kObject)) return {};
  for (JsonValue value = first(); value.exists(); value = value.next()) {
    if (value.key() == key) return value;
  }
  return {};
}

JsonValue JsonValue::first() const {
  if (num_items() == 0) return {};
  const bool member = type() == JsonType::kObject;
  return JsonValue(document_, index_ + (member ? 2 : 1), document_->nodes_[index_].end, member);
}

JsonValue JsonValue::next() const {
  if (!exists()) return {};
  const uint32_t end = document_->nodes_[index_].end;
  if (end >= parent_end_) return {};
  return JsonValue(document_, end + (member_ ? 1 : 0), parent_end_, member_);
}

absl::string_view JsonValue::key() const {
  return member_ ? document_->Text(document_->nodes_[index_ - 1]) : absl::string_view();
}

const char* JsonTypeName(JsonType type) {
  constexpr const char* kNames[] = {"null",     "a bool",   "an integer", "a number",
                                    "a string", "an array", "an object"};
  return kNames[static_cast<uint32_t>(type)];
}

}  // namespace llm
