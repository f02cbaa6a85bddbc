// Walks the key-value section once. A count is compared with the bytes left before it is believed.
#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/loader/gguf_metadata.h"

namespace llm {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;        // the format's own limit
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;  // a key's length, a type and the smallest value
constexpr uint64_t kLengthBytes = 8;            // of a string

absl::StatusOr<GgufType> ParseType(GgufCursor* cursor, absl::string_view what) {
  LLM_ASSIGN_OR_RETURN(const uint32_t id, cursor->Number<uint32_t>(what));
  if (id >= kNumGgufTypes) {
    return absl::InvalidArgumentError(absl::StrCat(what, " ", id, " does not exist"));
  }
  return static_cast<GgufType>(id);
}

absl::Status CheckBools(const HeaderBytes& bytes, ByteRange values) {
  for (const char value : bytes.View(values)) {
    if (value != 0 && value != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a bool is ", static_cast<int>(static_cast<unsigned char>(value))));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ByteRange> ParseNumbers(GgufCursor* cursor, GgufType type, uint64_t count) {
  const std::optional<uint64_t> size = CheckedMul(count, GgufTypeBytes(type));
  if (!size.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(count, " elements are beyond any file"));
  }
  LLM_ASSIGN_OR_RETURN(const ByteRange values, cursor->Skip(*size, "value"));
  if (type == GgufType::kBool) LLM_RETURN_IF_ERROR(CheckBools(cursor->bytes(), values));
  return values;
}

absl::StatusOr<ByteRange> ParseStrings(GgufCursor* cursor, uint64_t count,
                                       const LoaderLimits& limits) {
  if (count > cursor->remaining() / kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " strings do not fit ", cursor->DescribeRemaining()));
  }
  const uint64_t begin = cursor->position();
  LLM_RETURN_IF_ERROR(cursor->SkipStrings(count, limits.max_string_bytes));
  return ByteRange{begin, cursor->position() - begin};
}

absl::Status ParseArray(GgufCursor* cursor, const LoaderLimits& limits, GgufEntry* entry) {
  LLM_ASSIGN_OR_RETURN(entry->element_type, ParseType(cursor, "element type"));
  LLM_ASSIGN_OR_RETURN(entry->count, cursor->Number<uint64_t>("element count"));
  if (entry->count > limits.max_array_elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        entry->count, " elements are more than the limit of ", limits.max_array_elements));
  }
  if (entry->element_type == GgufType::kArray) {
    return absl::UnimplementedError("an array of arrays");
  }
  absl::StatusOr<ByteRange> elements =
      entry->element_type == GgufType::kString
          ? ParseStrings(cursor, entry->count, limits)
          : ParseNumbers(cursor, entry->element_type, entry->count);
  LLM_ASSIGN_OR_RETURN(entry->value, std::move(elements));
  return absl::OkStatus();
}

absl::Status ParseValue(GgufCursor* cursor, const LoaderLimits& limits, GgufEntry* entry) {
  LLM_ASSIGN_OR_RETURN(entry->type, ParseType(cursor, "value type"));
  if (entry->type == GgufType::kArray) return ParseArray(cursor, limits, entry);
  entry->element_type = entry->type;
  entry->count = 1;
  absl::StatusOr<ByteRange> value = entry->type == GgufType::kString
                                        ? cursor->String("string", limits.max_string_bytes)
                                        : ParseNumbers(cursor, entry->type, 1);
  LLM_ASSIGN_OR_RETURN(entry->value, std::move(value));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<GgufEntry>> ParseGgufMetadata(GgufCursor* cursor, uint64_t num_entries,
                                                         const LoaderLimits& limits) {
  if (num_entries > limits.max_metadata_entries ||
      num_entries > cursor->remaining() / kMinEntryBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_entries, " metadata entries are more than the limit of ",
                     limits.max_metadata_entries, " or than fit ", cursor->DescribeRemaining()));
  }
  std::vector<GgufEntry> entries;
  entries.reserve(static_cast<size_t>(num_entries));
  for (uint64_t i = 0; i < num_entries; ++i) {
    GgufEntry entry = {};
    absl::StatusOr<ByteRange> key = cursor->String("key", kMaxKeyBytes);
    if (!key.ok()) return At(absl::StrCat("metadata entry ", i), key.status());
    entry.key = *key;
    if (absl::Status value = ParseValue(cursor, limits, &entry); !value.ok()) {
      return At(absl::StrCat("metadata key ", Printable(cursor->bytes().View(entry.key))), value);
    }
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace llm
