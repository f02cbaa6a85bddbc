// Types are checked here, ranges where the GGUF keys that come of them are read.
#include "src/model/hub_config.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/loader/gguf_types.h"

namespace llm {

void HubConfig::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void HubConfig::Refuse(absl::string_view key, absl::string_view what) {
  Fail(absl::UnimplementedError(absl::StrCat(where_, ": key ", Printable(key), ": ", what)));
}

void HubConfig::RefuseValue(absl::string_view key, absl::string_view what) {
  Fail(absl::InvalidArgumentError(absl::StrCat(where_, ": key ", Printable(key), ": ", what)));
}

JsonValue HubConfig::Take(absl::string_view key) {
  read_.emplace(key);
  const JsonValue value = object_.Find(key);
  return value.is_null() ? JsonValue() : value;
}

template <typename T>
T HubConfig::Value(absl::string_view key, absl::StatusOr<T> value, T fallback) {
  if (value.ok()) return *std::move(value);
  RefuseValue(key, value.status().message());
  return fallback;
}

void HubConfig::Missing(absl::string_view key) {
  Fail(absl::NotFoundError(absl::StrCat(where_, ": key ", key, ": missing")));
}

bool HubConfig::Has(absl::string_view key) const {
  const JsonValue value = object_.Find(key);
  return value.exists() && !value.is_null();
}

int64_t HubConfig::Int(absl::string_view key) {
  if (!Has(key)) Missing(key);
  return IntOr(key, 1);
}

int64_t HubConfig::IntOr(absl::string_view key, int64_t fallback) {
  const JsonValue value = Take(key);
  if (!value.exists()) return fallback;
  const int64_t number = Value(key, value.GetInt(), fallback);
  // No size is beyond; sums and products of two of them then fit.
  if (number >= INT32_MIN && number <= INT32_MAX) return number;
  RefuseValue(key, absl::StrCat(number, " is out of range"));
  return fallback;
}

double HubConfig::Float(absl::string_view key) {
  if (!Has(key)) Missing(key);
  return FloatOr(key, 1.0);
}

double HubConfig::FloatOr(absl::string_view key, double fallback) {
  const JsonValue value = Take(key);
  return value.exists() ? Value(key, value.GetFloat(), fallback) : fallback;
}

bool HubConfig::BoolOr(absl::string_view key, bool fallback) {
  const JsonValue value = Take(key);
  return value.exists() ? Value(key, value.GetBool(), fallback) : fallback;
}

std::string HubConfig::TextOr(absl::string_view key, absl::string_view fallback) {
  const JsonValue value = Take(key);
  if (!value.exists()) return std::string(fallback);
  return std::string(Value(key, value.GetString(), fallback));
}

std::vector<float> HubConfig::Floats(absl::string_view key) {
  const JsonValue array = Take(key);
  std::vector<float> values;
  if (!array.exists()) return values;
  if (absl::Status type = array.CheckType(JsonType::kArray); !type.ok()) {
    RefuseValue(key, type.message());
  }
  for (JsonValue v = array.first(); v.exists(); v = v.next()) {
    values.push_back(static_cast<float>(Value(key, v.GetFloat(), 1.0)));
  }
  return values;
}

std::vector<std::string> HubConfig::Texts(absl::string_view key) {
  const JsonValue array = Take(key);
  std::vector<std::string> values;
  if (!array.exists()) return values;
  if (absl::Status type = array.CheckType(JsonType::kArray); !type.ok()) {
    RefuseValue(key, type.message());
  }
  for (JsonValue v = array.first(); v.exists(); v = v.next()) {
    values.emplace_back(Value(key, v.GetString(), absl::string_view()));
  }
  return values;
}

HubConfig HubConfig::Section(absl::string_view key) {
  const JsonValue value = Take(key);
  if (value.exists()) {
    if (absl::Status type = value.CheckType(JsonType::kObject); !type.ok()) {
      RefuseValue(key, type.message());
    }
  }
  return HubConfig(value, absl::StrCat(where_, ": ", key));
}

void HubConfig::Close(HubConfig* section) {
  section->RefuseUnread();
  Fail(section->status());
}

void HubConfig::Harmless(absl::string_view key) { Take(key); }

void HubConfig::RequireText(absl::string_view key, absl::string_view wanted) {
  const std::string value = TextOr(key, wanted);
  if (value != wanted) {
    Refuse(key, absl::StrCat(Printable(value), " is not supported, only ", wanted));
  }
}

void HubConfig::RequireBool(absl::string_view key, bool wanted) {
  if (BoolOr(key, wanted) != wanted) {
    Refuse(key, absl::StrCat("only ", wanted ? "true" : "false", " is supported"));
  }
}

void HubConfig::RequireNumber(absl::string_view key, double wanted) {
  const double value = FloatOr(key, wanted);
  if (value != wanted) Refuse(key, absl::StrCat(value, " is not supported, only ", wanted));
}

void HubConfig::RequireEmpty(absl::string_view key) {
  const JsonValue array = Take(key);
  if (array.exists() && (!array.Is(JsonType::kArray) || array.num_items() != 0)) {
    Refuse(key, "only [] is supported");
  }
}

void HubConfig::RequireAll(absl::string_view key, absl::string_view wanted) {
  for (const std::string& text : Texts(key)) {
    if (text == wanted) continue;
    Refuse(key, absl::StrCat(Printable(text), " is not supported, only ", wanted));
  }
}

void HubConfig::RefuseUnread() {
  for (JsonValue v = object_.first(); v.exists(); v = v.next()) {
    if (v.is_null() || read_.find(v.key()) != read_.end()) continue;
    Refuse(v.key(), "not known to this architecture's description");
  }
}

}  // namespace llm
