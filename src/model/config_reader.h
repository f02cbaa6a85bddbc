// Reads the keys of one architecture's namespace and remembers which were read, so that no key is
// ever silently ignored.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/loader/weight_source.h"

namespace llm {

// The first error sticks, and every later getter returns its fallback: a description reads all of
// its keys and the caller looks at `status` once. Keys are given without the namespace:
// "block_count" reads "llama.block_count".
class ConfigReader {
 public:
  // `source` outlives the reader.
  ConfigReader(const WeightSource& source, absl::string_view architecture)
      : source_(source), prefix_(std::string(architecture) + ".") {}

  const WeightSource& source() const { return source_; }
  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status);

  bool Has(absl::string_view key) const;
  // A count in [1, max]; 1 after an error. NOT_FOUND when the key is missing.
  int Size(absl::string_view key, int max);
  int SizeOr(absl::string_view key, int max, int fallback);
  // As SizeOr, but 0 is a value too.
  int CountOr(absl::string_view key, int max, int fallback);
  // Finite; positive unless the fallback is not.
  float Float(absl::string_view key);
  float FloatOr(absl::string_view key, float fallback);
  bool BoolOr(absl::string_view key, bool fallback);
  // Empty when the key is missing or, without an error, no array.
  std::vector<int64_t> IntsOrNone(absl::string_view key);
  std::string StringOr(absl::string_view key, absl::string_view fallback);

  // The key changes nothing that this library computes.
  void Harmless(absl::string_view key);
  // UNIMPLEMENTED when the key is there and is neither zero nor false.
  void RequireZero(absl::string_view key);
  // UNIMPLEMENTED, naming the first key of the namespace that nothing read.
  void RefuseUnread();

  std::string FullName(absl::string_view key) const { return prefix_ + std::string(key); }

 private:
  std::string Take(absl::string_view key);
  int InRange(absl::string_view key, int min, int max);

  const WeightSource& source_;
  const std::string prefix_;
  std::set<std::string> read_;
  absl::Status status_;
};

}  // namespace llm
