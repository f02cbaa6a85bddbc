// The header of a safetensors file: an eight-byte length, then JSON that says which bytes of the
// rest are which tensor. Spec: the README of the safetensors project.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"

namespace llm {

enum class SafeType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool
};
const char* SafeTypeName(SafeType type);  // "BF16"
uint64_t SafeTypeBytes(SafeType type);

struct SafeTensor {
  std::string name;
  SafeType type = SafeType::kF32;
  std::vector<int64_t> shape;       // row-major; each at least 1
  const ModelFile* file = nullptr;  // as long as who opened it
  uint64_t offset = 0;              // in the file
  uint64_t size_bytes = 0;
};

// In the order of their bytes. INVALID_ARGUMENT, naming the tensor, for a shape that does not give
// its bytes, for bytes that overlap, lie outside the file or belong to no tensor, and for a field
// that the format does not have; UNIMPLEMENTED for an unknown dtype; the messages begin with the
// file's name.
absl::StatusOr<std::vector<SafeTensor>> ReadSafetensorsHeader(const ModelFile& file,
                                                              const LoaderLimits& limits);

}  // namespace llm
