// Typed access to the entries; numbers are decoded where they lie, at any alignment.
#include "src/loader/gguf_metadata.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

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

template <typename Stored, typename Value>
void LoadAll(const HeaderBytes& bytes, uint64_t offset, absl::Span<Value> values) {
  for (Value& value : values) {
    value = static_cast<Value>(bytes.Load<Stored>(offset));
    offset += sizeof(Stored);
  }
}

// REQUIRES: `type` is an integer or a bool. A uint64 beyond int64 comes out negative, which
// CheckFits tells from the rest.
void LoadWrapped(const HeaderBytes& bytes, uint64_t offset, GgufType type,
                 absl::Span<int64_t> values) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kBool:
      return LoadAll<uint8_t>(bytes, offset, values);
    case GgufType::kInt8:
      return LoadAll<int8_t>(bytes, offset, values);
    case GgufType::kUint16:
      return LoadAll<uint16_t>(bytes, offset, values);
    case GgufType::kInt16:
      return LoadAll<int16_t>(bytes, offset, values);
    case GgufType::kUint32:
      return LoadAll<uint32_t>(bytes, offset, values);
    case GgufType::kInt32:
      return LoadAll<int32_t>(bytes, offset, values);
    default:
      return LoadAll<int64_t>(bytes, offset, values);
  }
}

absl::Status CheckFits(int64_t wrapped) {
  if (wrapped >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(static_cast<uint64_t>(wrapped), " does not fit a 64-bit signed integer"));
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
  int64_t value = 0;
  LoadWrapped(bytes_, entry->value.offset, entry->type, absl::MakeSpan(&value, 1));
  if (entry->type == GgufType::kUint64) {
    if (absl::Status fits = CheckFits(value); !fits.ok()) return At(Where(key), fits);
  }
  return value;
}

absl::StatusOr<double> GgufMetadata::GetFloat(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, Find(key));
  if (!IsFloat(entry->type)) return WrongType(*entry, "a float");
  const uint64_t offset = entry->value.offset;
  if (entry->type == GgufType::kFloat32) return static_cast<double>(bytes_.Load<float>(offset));
  return bytes_.Load<double>(offset);
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

absl::StatusOr<TextList> GgufMetadata::GetStrings(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindArray(key, "an array of strings"));
  if (entry->element_type != GgufType::kString) return WrongType(*entry, "an array of strings");
  return TextList(bytes_.View(entry->value), static_cast<size_t>(entry->count));
}

absl::StatusOr<const GgufEntry*> GgufMetadata::FindInts(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindArray(key, "an array of integers"));
  const GgufType type = entry->element_type;
  if (!IsInteger(type) && type != GgufType::kBool) return WrongType(*entry, "an array of integers");
  return entry;
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::GetInts(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindInts(key));
  const GgufType type = entry->element_type;
  std::vector<int64_t> values(static_cast<size_t>(entry->count));
  LoadWrapped(bytes_, entry->value.offset, type, absl::MakeSpan(values));
  for (size_t i = 0; type == GgufType::kUint64 && i < values.size(); ++i) {
    if (absl::Status fits = CheckFits(values[i]); !fits.ok()) {
      return At(absl::StrCat(Where(key), ": element ", i), fits);
    }
  }
  return values;
}

absl::StatusOr<std::vector<uint8_t>> GgufMetadata::GetSmallInts(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindInts(key));
  std::vector<uint8_t> values(static_cast<size_t>(entry->count));
  std::array<int64_t, 256> wide;  // some at a time: all of them would be pages of memory
  for (size_t begin = 0; begin < values.size(); begin += wide.size()) {
    const size_t count = std::min(wide.size(), values.size() - begin);
    LoadWrapped(bytes_, entry->value.offset + begin * GgufTypeBytes(entry->element_type),
                entry->element_type, absl::MakeSpan(wide.data(), count));
    for (size_t i = 0; i < count; ++i) {
      if (wide[i] < 0 || wide[i] > UINT8_MAX) {
        return absl::InvalidArgumentError(absl::StrCat(Where(key), ": element ", begin + i, " is ",
                                                       wide[i], ", not one of 0 to 255"));
      }
      values[begin + i] = static_cast<uint8_t>(wide[i]);
    }
  }
  return values;
}

absl::StatusOr<std::vector<float>> GgufMetadata::GetFloats(absl::string_view key) const {
  LLM_ASSIGN_OR_RETURN(const GgufEntry* entry, FindArray(key, "an array of floats"));
  const GgufType type = entry->element_type;
  if (!IsFloat(type)) return WrongType(*entry, "an array of floats");
  std::vector<float> values(static_cast<size_t>(entry->count));
  if (type == GgufType::kFloat32) {
    LoadAll<float>(bytes_, entry->value.offset, absl::MakeSpan(values));
  } else {
    LoadAll<double>(bytes_, entry->value.offset, absl::MakeSpan(values));
  }
  return values;
}

std::vector<absl::string_view> GgufMetadata::Keys() const {
  std::vector<absl::string_view> keys;
  keys.reserve(entries_.size());
  for (const GgufEntry& entry : entries_) keys.push_back(bytes_.View(entry.key));
  return keys;
}

std::optional<ArrayInfo> GgufMetadata::DescribeArray(absl::string_view key) const {
  const auto found = index_.find(key);
  if (found == index_.end() || found->second->type != GgufType::kArray) return std::nullopt;
  const GgufType type = found->second->element_type;
  const char* elements = type == GgufType::kString ? "strings"
                         : IsFloat(type)           ? "floats"
                                                   : "integers";
  return ArrayInfo{.elements = elements, .size = found->second->count};
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
