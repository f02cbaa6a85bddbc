// Reads the keys of a hub's config.json and remembers which were read, so that no key is ever
// silently ignored.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/loader/json_document.h"

namespace llm {

// The first error sticks, and every later getter returns its fallback, as with ConfigReader. A key
// whose value is null counts as absent. Errors name the key and where it stands.
class HubConfig {
 public:
  // `object` is a JSON object; `where` begins messages: "config.json".
  HubConfig(JsonValue object, std::string where) : object_(object), where_(std::move(where)) {}

  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status);
  // UNIMPLEMENTED: "config.json: key hidden_act: <what>".
  void Refuse(absl::string_view key, absl::string_view what);
  void RefuseValue(absl::string_view key, absl::string_view what);  // INVALID_ARGUMENT

  bool Has(absl::string_view key) const;
  bool IsNull(absl::string_view key) const { return object_.Find(key).is_null(); }
  bool Is(absl::string_view key, JsonType type) const { return object_.Find(key).Is(type); }
  int64_t Int(absl::string_view key);  // an error when absent
  int64_t IntOr(absl::string_view key, int64_t fallback);
  double Float(absl::string_view key);
  double FloatOr(absl::string_view key, double fallback);
  bool BoolOr(absl::string_view key, bool fallback);
  std::string TextOr(absl::string_view key, absl::string_view fallback);
  std::vector<float> Floats(absl::string_view key);
  std::vector<std::string> Texts(absl::string_view key);
  // An object inside; empty when absent. What is left unread in it is for Close to refuse.
  HubConfig Section(absl::string_view key);
  // Takes the section's error over, and refuses what nothing read in it.
  void Close(HubConfig* section);

  // The key changes nothing that this library computes.
  void Harmless(absl::string_view key);
  // UNIMPLEMENTED when the key is there with another value.
  void RequireText(absl::string_view key, absl::string_view wanted);
  void RequireBool(absl::string_view key, bool wanted);
  void RequireNumber(absl::string_view key, double wanted);
  void RequireEmpty(absl::string_view key);  // an array
  // Every text of an array is this one.
  void RequireAll(absl::string_view key, absl::string_view wanted);
  // UNIMPLEMENTED, naming the first key that nothing read.
  void RefuseUnread();

  const std::string& where() const { return where_; }

 private:
  JsonValue Take(absl::string_view key);
  // Fails with the key's name, and returns `fallback`.
  template <typename T>
  T Value(absl::string_view key, absl::StatusOr<T> value, T fallback);
  void Missing(absl::string_view key);

  JsonValue object_;
  std::string where_;
  std::set<std::string, std::less<>> read_;
  absl::Status status_;
};

}  // namespace llm
