// Range checks live here, so that an architecture's description is a list of keys.
#include "src/model/config_reader.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace llm {

void ConfigReader::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);  // OK changes nothing
}

std::string ConfigReader::Take(absl::string_view key) {
  std::string name = FullName(key);
  read_.insert(name);
  return name;
}

bool ConfigReader::Has(absl::string_view key) const {
  return source_.metadata().Has(FullName(key));
}

int ConfigReader::InRange(absl::string_view key, int min, int max) {
  const std::string name = Take(key);
  const absl::StatusOr<int64_t> value = source_.metadata().GetInt(name);
  if (!value.ok()) {
    Fail(value.status());
    return min;
  }
  if (*value < min || *value > max) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", name, ": expected ", min, " to ", max, ", file has ", *value)));
    return min;
  }
  return static_cast<int>(*value);
}

int ConfigReader::Size(absl::string_view key, int max) { return InRange(key, 1, max); }

int ConfigReader::SizeOr(absl::string_view key, int max, int fallback) {
  return Has(key) ? Size(key, max) : fallback;
}

int ConfigReader::CountOr(absl::string_view key, int max, int fallback) {
  return Has(key) ? InRange(key, 0, max) : fallback;
}

float ConfigReader::Float(absl::string_view key) {
  if (!Has(key)) Fail(absl::NotFoundError(absl::StrCat("key ", FullName(key), ": missing")));
  return FloatOr(key, 1.0f);
}

float ConfigReader::FloatOr(absl::string_view key, float fallback) {
  const std::string name = Take(key);
  if (!source_.metadata().Has(name)) return fallback;
  const absl::StatusOr<double> value = source_.metadata().GetFloat(name);
  if (!value.ok()) {
    Fail(value.status());
    return fallback;
  }
  // The bounds keep reciprocals and powers of the value finite in f32.
  const bool zero_is_fine = fallback <= 0 && *value == 0;
  if (!zero_is_fine && !(*value > 1e-30 && *value < 1e30)) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("key ", name, ": expected a positive number, file has ", *value)));
    return fallback;
  }
  return static_cast<float>(*value);
}

bool ConfigReader::BoolOr(absl::string_view key, bool fallback) {
  const std::string name = Take(key);
  if (!source_.metadata().Has(name)) return fallback;
  const absl::StatusOr<bool> value = source_.metadata().GetBool(name);
  if (value.ok()) return *value;
  Fail(value.status());
  return fallback;
}

std::vector<int64_t> ConfigReader::IntsOrNone(absl::string_view key) {
  const absl::StatusOr<std::vector<int64_t>> values = source_.metadata().GetInts(Take(key));
  return values.ok() ? *values : std::vector<int64_t>();
}

std::string ConfigReader::StringOr(absl::string_view key, absl::string_view fallback) {
  const std::string name = Take(key);
  if (!source_.metadata().Has(name)) return std::string(fallback);
  const absl::StatusOr<absl::string_view> value = source_.metadata().GetString(name);
  if (!value.ok()) {
    Fail(value.status());
    return std::string(fallback);
  }
  return std::string(*value);
}

void ConfigReader::Harmless(absl::string_view key) { Take(key); }

void ConfigReader::RequireZero(absl::string_view key) {
  const std::string name = Take(key);
  const Metadata& metadata = source_.metadata();
  if (!metadata.Has(name)) return;
  const absl::StatusOr<int64_t> integer = metadata.GetInt(name);
  if (integer.ok() && *integer == 0) return;
  const absl::StatusOr<double> real = metadata.GetFloat(name);
  if (real.ok() && *real == 0) return;
  const absl::StatusOr<bool> flag = metadata.GetBool(name);
  if (flag.ok() && !*flag) return;
  Fail(absl::UnimplementedError(absl::StrCat("key ", name, ": only 0 is supported")));
}

void ConfigReader::RefuseUnread() {
  for (const absl::string_view key : source_.metadata().Keys()) {
    if (absl::StartsWith(key, prefix_) && read_.count(std::string(key)) == 0) {
      Fail(absl::UnimplementedError(
          absl::StrCat("key ", key, ": not known to this architecture's description")));
    }
  }
}

}  // namespace llm
