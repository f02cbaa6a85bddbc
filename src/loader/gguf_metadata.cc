// Typed access to the entries; numbers are decoded where they lie, at any alignment.
#include "src/loader/gguf_metadata.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

bool IsInteger(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kUint16:
    case GgufType::kInt16:
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kUint64:
    case GgufType::kInt64:
      return true;
    default:
      return false;
  }
}

bool IsFloat(GgufType type) { return type == GgufType::kFloat32 || type == GgufType::kFloat64; }

// REQUIRES: `type` is an integer or a bool. A uint64 beyond int64 comes out negative, which LoadInt
// tells from the rest.
int64_t LoadWrapped(const HeaderBytes& bytes, uint64_t offset, GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kBool:
      return bytes.Load<uint8_t>(offset);
    case GgufType::kInt8:
      return bytes.Load<int8_t>(offset);
    case GgufType::kUint16:
      return bytes.Load<uint16_t>(offset);
    case GgufType::kInt16:
      return bytes.Load<int16_t>(offset);
    case GgufType::kUint32:
      return bytes.Load<uint32_t>(offset);
    case GgufType::kInt32:
      return bytes.Load<int32_t>(offset);
    default:
      return bytes.Load<int64_t>(offset);
  }
}

absl::StatusOr<int64_t> LoadInt(const HeaderBytes& bytes, uint64_t offset, GgufType type) {
  const int64_t value = LoadWrapped(bytes, offset, type);
  if (type == GgufType::kUint64 && value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(static_cast<uint64_t>(value), " does not fit a 64-bit signed integer"));
  }
  return value;
}

double LoadFloat(const HeaderBytes& bytes, uint64_t offset, GgufType type) {
  if (type == GgufType::kFloat32) return static_cast<double>(bytes.Load<float>(offset));
  return bytes.Load<double>(offset);
}

std::string DescribeType(const GgufEntry& entry) {
  if (entry.type != GgufType::kArray) return GgufTypeName(entry.type);
  return absl::StrCat("array of ", GgufTypeName(entry.element_type));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GgufMetadata>> GgufMetadata::Create(HeaderBytes bytes,
                                                                   std::vector<GgufEntry> entries,
                                                                   std::string file_name) {
  std::unique_ptr<GgufMetadata> metadata(
      new GgufMetadata(std::move(bytes), std::move(entries), std::move(file_name)));
  for (const GgufEntry& entry : metadata->entries_) {
    const absl::string_view key = metadata->bytes_.View(entry.key);
    if (!metadata->index_.emplace(key, &entry).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("metadata key ", Printable(key), ": there twice"));
    }
  }
  return metadata;
}

absl::StatusOr<int64_t> GgufMetadata::GetInt(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, Find(key));
  if (!IsInteger(entry->type)) return WrongType(*entry, "an integer");
  absl::StatusOr<int64_t> value = LoadInt(bytes_, entry->value.offset, entry->type);
  if (!value.ok()) return At(Where(key), value.status());
  return value;
}

absl::StatusOr<double> GgufMetadata::GetFloat(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, Find(key));
  if (!IsFloat(entry->type)) return WrongType(*entry, "a float");
  return LoadFloat(bytes_, entry->value.offset, entry->type);
}

absl::StatusOr<bool> GgufMetadata::GetBool(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, Find(key));
  if (entry->type != GgufType::kBool) return WrongType(*entry, "a bool");
  return bytes_.Load<uint8_t>(entry->value.offset) != 0;
}

absl::StatusOr<absl::string_view> GgufMetadata::GetString(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, Find(key));
  if (entry->type != GgufType::kString) return WrongType(*entry, "a string");
  return bytes_.View(entry->value);
}

absl::StatusOr<std::vector<absl::string_view>> GgufMetadata::GetStrings(
    absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindArray(key, "an array of strings"));
  if (entry->element_type != GgufType::kString) return WrongType(*entry, "an array of strings");
  std::vector<absl::string_view> strings;
  strings.reserve(static_cast<size_t>(entry->count));
  uint64_t offset = entry->value.offset;
  for (uint64_t i = 0; i < entry->count; ++i) {
    const uint64_t size = bytes_.Load<uint64_t>(offset);
    offset += sizeof(uint64_t);
    strings.push_back(bytes_.View({offset, size}));
    offset += size;
  }
  return strings;
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::GetInts(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindArray(key, "an array of integers"));
  const GgufType type = entry->element_type;
  if (!IsInteger(type) && type != GgufType::kBool) return WrongType(*entry, "an array of integers");
  std::vector<int64_t> values;
  values.reserve(static_cast<size_t>(entry->count));
  for (uint64_t i = 0; i < entry->count; ++i) {
    const uint64_t offset = entry->value.offset + i * GgufTypeBytes(type);
    absl::StatusOr<int64_t> value = LoadInt(bytes_, offset, type);
    if (!value.ok()) return At(absl::StrCat(Where(key), ": element ", i), value.status());
    values.push_back(*value);
  }
  return values;
}

absl::StatusOr<std::vector<float>> GgufMetadata::GetFloats(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindArray(key, "an array of floats"));
  const GgufType type = entry->element_type;
  if (!IsFloat(type)) return WrongType(*entry, "an array of floats");
  std::vector<float> values;
  values.reserve(static_cast<size_t>(entry->count));
  for (uint64_t i = 0; i < entry->count; ++i) {
    const uint64_t offset = entry->value.offset + i * GgufTypeBytes(type);
    values.push_back(static_cast<float>(LoadFloat(bytes_, offset, type)));
  }
  return values;
}

std::vector<absl::string_view> GgufMetadata::Keys() const {
  std::vector<absl::string_view> keys;
  keys.reserve(entries_.size());
  for (const GgufEntry& entry : entries_) keys.push_back(bytes_.View(entry.key));
  return keys;
}

absl::StatusOr<const GgufEntry*> GgufMetadata::Find(absl::string_view key) const {
  const auto found = index_.find(key);
  if (found == index_.end()) return absl::NotFoundError(absl::StrCat(Where(key), ": missing"));
  return found->second;
}

absl::StatusOr<const GgufEntry*> GgufMetadata::FindArray(absl::string_view key,
                                                         absl::string_view wanted) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, Find(key));
  if (entry->type != GgufType::kArray) return WrongType(*entry, wanted);
  return entry;
}

std::string GgufMetadata::Where(absl::string_view key) const {
  return absl::StrCat("gguf ", file_name_, ": metadata key ", Printable(key));
}

absl::Status GgufMetadata::WrongType(const GgufEntry& entry, absl::string_view wanted) const {
  return absl::InvalidArgumentError(absl::StrCat(Where(bytes_.View(entry.key)), ": expected ",
                                                 wanted, ", file has ", DescribeType(entry)));
}

}  // namespace llm
