// The key-value section of a GGUF header. Values stay where they were read: an array is decoded
// when it is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/loader/gguf_cursor.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/gguf_types.h"
#include "src/loader/weight_source.h"

namespace llm {

struct GgufEntry {
  ByteRange key;
  GgufType type;
  GgufType element_type;  // of an array; else as `type`
  uint64_t count;         // elements of an array; else 1
  ByteRange value;        // a string without its length; of an array the elements
};

// Checks every length, so that what is returned can be read without looking at the limits again.
absl::StatusOr<std::vector<GgufEntry>> ParseGgufMetadata(GgufCursor* cursor, uint64_t num_entries,
                                                         const LoaderLimits& limits);

class GgufMetadata final : public Metadata {
 public:
  // INVALID_ARGUMENT when a key is there twice.
  static absl::StatusOr<std::unique_ptr<GgufMetadata>> Create(HeaderBytes bytes,
                                                              std::vector<GgufEntry> entries,
                                                              std::string file_name);

  bool Has(absl::string_view key) const override { return index_.count(key) > 0; }
  absl::StatusOr<int64_t> GetInt(absl::string_view key) const override;
  absl::StatusOr<double> GetFloat(absl::string_view key) const override;
  absl::StatusOr<bool> GetBool(absl::string_view key) const override;
  absl::StatusOr<absl::string_view> GetString(absl::string_view key) const override;
  absl::StatusOr<TextList> GetStrings(absl::string_view key) const override;
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key) const override;
  absl::StatusOr<std::vector<uint8_t>> GetSmallInts(absl::string_view key) const override;
  absl::StatusOr<std::vector<float>> GetFloats(absl::string_view key) const override;
  std::vector<absl::string_view> Keys() const override;
  std::optional<ArrayInfo> DescribeArray(absl::string_view key) const override;

  const HeaderBytes& bytes() const { return bytes_; }
  const std::vector<GgufEntry>& entries() const { return entries_; }

 private:
  GgufMetadata(HeaderBytes bytes, std::vector<GgufEntry> entries, std::string file_name)
      : bytes_(std::move(bytes)), entries_(std::move(entries)), file_name_(std::move(file_name)) {}

  absl::StatusOr<const GgufEntry*> Find(absl::string_view key) const;
  absl::StatusOr<const GgufEntry*> FindArray(absl::string_view key, absl::string_view wanted) const;
  absl::StatusOr<const GgufEntry*> FindInts(absl::string_view key) const;
  std::string Where(absl::string_view key) const;
  absl::Status WrongType(const GgufEntry& entry, absl::string_view wanted) const;

  const HeaderBytes bytes_;
  const std::vector<GgufEntry> entries_;  // in the order of the file
  const std::string file_name_;
  std::map<absl::string_view, const GgufEntry*> index_;  // by key
};

}  // namespace llm
