// Numbers and names that the GGUF format fixes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llm {

// Of a metadata value.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
constexpr uint32_t kNumGgufTypes = 13;

// 0 for a string or an array, whose size is in the file.
uint64_t GgufTypeBytes(GgufType type);
const char* GgufTypeName(GgufType type);

// "Q8_1 (type 9)", or "type 77" when ggml has no such type that we know of.
std::string DescribeTensorType(uint32_t ggml_type);

// `name` as it may stand in a message: quoted when it is not plain text, and cut when it is long.
// It comes from the file.
std::string Printable(absl::string_view name);

// `status` with "where: " before its message.
absl::Status At(absl::string_view where, const absl::Status& status);

}  // namespace llm
