// Every number is checked before it is used; offsets must cover the data without overlap or gap, as
// the format demands.
#include "src/loader/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/loader/json_document.h"

namespace llm {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are read as they lie in the file");

constexpr uint32_t kMaxDims = 8;

struct TypeRow {
  SafeType type;
  const char* name;
  uint64_t bytes;
};

// In the order of the enum.
constexpr TypeRow kTypes[] = {
    {SafeType::kF64, "F64", 8},        {SafeType::kF32, "F32", 4},
    {SafeType::kF16, "F16", 2},        {SafeType::kBF16, "BF16", 2},
    {SafeType::kF8E4M3, "F8_E4M3", 1}, {SafeType::kF8E5M2, "F8_E5M2", 1},
    {SafeType::kF8E8M0, "F8_E8M0", 1}, {SafeType::kI64, "I64", 8},
    {SafeType::kI32, "I32", 4},        {SafeType::kI16, "I16", 2},
    {SafeType::kI8, "I8", 1},          {SafeType::kU64, "U64", 8},
    {SafeType::kU32, "U32", 4},        {SafeType::kU16, "U16", 2},
    {SafeType::kU8, "U8", 1},          {SafeType::kBool, "BOOL", 1},
};

absl::Status Field(absl::string_view field, const absl::Status& status) {
  return At(field, status);
}

absl::StatusOr<SafeType> ParseType(JsonValue value) {
  const absl::StatusOr<absl::string_view> name = value.GetString();
  if (!name.ok()) return Field("dtype", name.status());
  for (const TypeRow& row : kTypes) {
    if (*name == row.name) return row.type;
  }
  return absl::UnimplementedError(absl::StrCat("dtype ", Printable(*name), " is not supported"));
}

absl::StatusOr<std::vector<int64_t>> ParseShape(JsonValue value) {
  if (absl::Status array = value.CheckType(JsonType::kArray); !array.ok()) {
    return Field("shape", array);
  }
  if (value.num_items() > kMaxDims) {
    return absl::UnimplementedError(
        absl::StrCat("shape: ", value.num_items(), " dimensions, at most ", kMaxDims));
  }
  std::vector<int64_t> shape;
  for (JsonValue item = value.first(); item.exists(); item = item.next()) {
    const absl::StatusOr<int64_t> size = item.GetInt();
    if (!size.ok()) return Field("shape", size.status());
    if (*size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape: dimension ", shape.size(), " is ", *size));
    }
    shape.push_back(*size);
  }
  if (shape.empty()) shape.push_back(1);  // a single number
  return shape;
}

absl::Status ParseOffsets(JsonValue value, uint64_t data_bytes, SafeTensor* tensor) {
  if (absl::Status array = value.CheckType(JsonType::kArray); !array.ok()) {
    return Field("data_offsets", array);
  }
  if (value.num_items() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets: ", value.num_items(), " numbers, expected 2"));
  }
  const absl::StatusOr<int64_t> begin = value.first().GetInt();
  const absl::StatusOr<int64_t> end = value.first().next().GetInt();
  if (!begin.ok()) return Field("data_offsets", begin.status());
  if (!end.ok()) return Field("data_offsets", end.status());
  if (*begin < 0 || *end < *begin || static_cast<uint64_t>(*end) > data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("data_offsets: [", *begin, ", ", *end,
                                                   ") lies outside the ", data_bytes,
                                                   " bytes of data"));
  }
  tensor->offset = static_cast<uint64_t>(*begin);
  tensor->size_bytes = static_cast<uint64_t>(*end - *begin);
  return absl::OkStatus();
}

absl::Status CheckSize(const SafeTensor& tensor) {
  std::optional<uint64_t> bytes = SafeTypeBytes(tensor.type);
  for (const int64_t size : tensor.shape) {
    if (bytes.has_value()) bytes = CheckedMul(*bytes, static_cast<uint64_t>(size));
  }
  if (bytes == tensor.size_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("data_offsets: ", tensor.size_bytes, " bytes, but shape [",
                   absl::StrJoin(tensor.shape, ", "), "] of ", SafeTypeName(tensor.type), " takes ",
                   bytes ? absl::StrCat(*bytes) : "more than 64 bits"));
}

absl::StatusOr<SafeTensor> ParseTensor(JsonValue record, uint64_t data_bytes) {
  LLM_RETURN_IF_ERROR(record.CheckType(JsonType::kObject));
  for (JsonValue field = record.first(); field.exists(); field = field.next()) {
    const absl::string_view key = field.key();
    if (key == "dtype" || key == "shape" || key == "data_offsets") continue;
    return absl::InvalidArgumentError(absl::StrCat("field ", Printable(key), " is unknown"));
  }
  SafeTensor tensor;
  LLM_ASSIGN_OR_RETURN(tensor.type, ParseType(record.Find("dtype")));
  LLM_ASSIGN_OR_RETURN(tensor.shape, ParseShape(record.Find("shape")));
  LLM_RETURN_IF_ERROR(ParseOffsets(record.Find("data_offsets"), data_bytes, &tensor));
  LLM_RETURN_IF_ERROR(CheckSize(tensor));
  return tensor;
}

absl::Status CheckCoverage(const std::vector<SafeTensor>& tensors, uint64_t data_bytes) {
  uint64_t end = 0;
  const SafeTensor* before = nullptr;
  for (const SafeTensor& tensor : tensors) {
    if (tensor.offset < end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", Printable(tensor.name), ": overlaps tensor ", Printable(before->name)));
    }
    if (tensor.offset > end) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(tensor.name), ": ",
                                                     tensor.offset - end,
                                                     " bytes before it belong to no tensor"));
    }
    end = tensor.offset + tensor.size_bytes;
    before = &tensor;
  }
  if (end == data_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the last ", data_bytes - end, " bytes belong to no tensor"));
}

absl::StatusOr<std::string> ReadHeaderText(const ModelFile& file, const LoaderLimits& limits) {
  uint64_t size = 0;
  if (file.size() < sizeof(size)) {
    return absl::InvalidArgumentError("shorter than the length of its header");
  }
  LLM_RETURN_IF_ERROR(file.Read(0, sizeof(size), &size));
  if (size > file.size() - sizeof(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a header of ", size, " bytes in a file of ", file.size()));
  }
  if (size > limits.max_header_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a header of ", size, " bytes, more than the limit of ", limits.max_header_bytes));
  }
  std::string text(static_cast<size_t>(size), '\0');
  LLM_RETURN_IF_ERROR(file.Read(sizeof(size), size, text.data()));
  return text;
}

absl::StatusOr<std::vector<SafeTensor>> ReadHeader(const ModelFile& file,
                                                   const LoaderLimits& limits) {
  LLM_ASSIGN_OR_RETURN(const std::string text, ReadHeaderText(file, limits));
  LLM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text));
  LLM_RETURN_IF_ERROR(document.root().CheckType(JsonType::kObject));
  if (document.root().num_items() > limits.max_tensors) {
    return absl::ResourceExhaustedError(absl::StrCat(
        document.root().num_items(), " tensors, more than the limit of ", limits.max_tensors));
  }
  const uint64_t data_begin = sizeof(uint64_t) + text.size();
  const uint64_t data_bytes = file.size() - data_begin;
  std::vector<SafeTensor> tensors;
  for (JsonValue v = document.root().first(); v.exists(); v = v.next()) {
    if (v.key() == "__metadata__") continue;  // free text
    absl::StatusOr<SafeTensor> tensor = ParseTensor(v, data_bytes);
    if (!tensor.ok()) return At(absl::StrCat("tensor ", Printable(v.key())), tensor.status());
    tensor->name = std::string(v.key());
    tensor->file = &file;
    tensors.push_back(*std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.name < b.name;
  });
  LLM_RETURN_IF_ERROR(CheckCoverage(tensors, data_bytes));
  for (SafeTensor& tensor : tensors) tensor.offset += data_begin;
  return tensors;
}

}  // namespace

const char* SafeTypeName(SafeType type) { return kTypes[static_cast<size_t>(type)].name; }
uint64_t SafeTypeBytes(SafeType type) { return kTypes[static_cast<size_t>(type)].bytes; }

absl::StatusOr<std::vector<SafeTensor>> ReadSafetensorsHeader(const ModelFile& file,
                                                              const LoaderLimits& limits) {
  absl::StatusOr<std::vector<SafeTensor>> tensors = ReadHeader(file, limits);
  if (!tensors.ok()) return At(absl::StrCat("safetensors ", file.name()), tensors.status());
  return tensors;
}

}  // namespace llm
