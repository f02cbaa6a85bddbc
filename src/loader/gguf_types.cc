// Tensor types are named here also when this library cannot read them: the message then says what
// the file wants.
#include "src/loader/gguf_types.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/weight_format.h"

namespace llm {
namespace {

struct TensorTypeName {
  uint32_t ggml_type;
  const char* name;
};

constexpr TensorTypeName kUnreadTensorTypes[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"}, {40, "NVFP4"},  {41, "Q1_0"},
};

const char* TensorTypeNameOrNull(uint32_t ggml_type) {
  for (const TensorTypeName& type : kUnreadTensorTypes) {
    if (type.ggml_type == ggml_type) return type.name;
  }
  if (ggml_type > INT32_MAX) return nullptr;
  const WeightFormatInfo* info = FindWeightFormat(static_cast<int32_t>(ggml_type));
  return info == nullptr ? nullptr : info->name;
}

}  // namespace

uint64_t GgufTypeBytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

const char* GgufTypeName(GgufType type) {
  constexpr const char* kNames[kNumGgufTypes] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                                 "int32",  "float32", "bool",   "string", "array",
                                                 "uint64", "int64",   "float64"};
  const uint32_t id = static_cast<uint32_t>(type);
  return id < kNumGgufTypes ? kNames[id] : "unknown";
}

std::string DescribeTensorType(uint32_t ggml_type) {
  const char* name = TensorTypeNameOrNull(ggml_type);
  if (name == nullptr) return absl::StrCat("type ", ggml_type);
  return absl::StrCat(name, " (type ", ggml_type, ")");
}

std::string Printable(absl::string_view name) {
  constexpr size_t kMaxBytes = 96;  // ggml's own tensor names have at most 63
  const std::string text = absl::CHexEscape(name.substr(0, kMaxBytes));
  const char* cut = name.size() > kMaxBytes ? "..." : "";
  if (text == name || (*cut != '\0' && text == name.substr(0, kMaxBytes))) return text + cut;
  return absl::StrCat("\"", text, cut, "\"");
}

absl::Status At(absl::string_view where, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace llm
