// A model file seen as metadata and named tensors, whatever its format. Reads bytes only when
// asked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/quant/weight_format.h"
#include "src/base/text_list.h"
#include "src/loader/model_file.h"

namespace llm {

struct TensorInfo {
  std::string name;
  WeightFormat format;
  std::vector<int64_t> shape;  // row-major: last dimension contiguous ([rows, cols] for a matrix;
                               // GGUF's order reversed)
  uint64_t file_offset = 0;    // absolute
  uint64_t size_bytes = 0;
};

// "Q4_1".
inline const char* TypeName(const TensorInfo& tensor) {
  return GetWeightFormat(tensor.format).name;
}

struct ArrayInfo {
  const char* elements = "";  // "strings", "integers" (bools among them) or "floats"
  uint64_t size = 0;
};

// Typed metadata. Getters return NOT_FOUND for a missing key and INVALID_ARGUMENT for one of
// another type, both naming the key. Integers of any width and sign read as int64 (a uint64 beyond
// its range is INVALID_ARGUMENT); floats as double.
class Metadata {
 public:
  virtual ~Metadata() = default;
  virtual bool Has(absl::string_view key) const = 0;
  virtual absl::StatusOr<int64_t> GetInt(absl::string_view key) const = 0;
  virtual absl::StatusOr<double> GetFloat(absl::string_view key) const = 0;
  virtual absl::StatusOr<bool> GetBool(absl::string_view key) const = 0;
  // What these two return lives as long as the source.
  virtual absl::StatusOr<absl::string_view> GetString(absl::string_view key) const = 0;
  virtual absl::StatusOr<TextList> GetStrings(absl::string_view key) const = 0;
  // Bools, which have no getter of their own, read as 0 and 1.
  virtual absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key) const = 0;
  // The same of values from 0 to 255; INVALID_ARGUMENT for others.
  virtual absl::StatusOr<std::vector<uint8_t>> GetSmallInts(absl::string_view key) const = 0;
  virtual absl::StatusOr<std::vector<float>> GetFloats(absl::string_view key) const = 0;
  virtual std::vector<absl::string_view> Keys() const = 0;
  // What an array holds, without a look at its elements, of which there may be hundreds of
  // thousands; nullopt for another value, and from a source that does not know.
  virtual std::optional<ArrayInfo> DescribeArray(absl::string_view /*key*/) const {
    return std::nullopt;
  }
};

// Weights as a pack holds them: laid out for one backend, in one piece. A pack's TensorInfo says
// where in it a tensor lies, padding excluded.
struct PackedImage {
  const ModelFile* file = nullptr;  // as long as the source
  std::string numerics_id;          // NumericsId of the backend
  uint64_t file_offset = 0;
  uint64_t size_bytes = 0;
  std::vector<uint64_t> checksums;  // [tensors], in their order: of bytes, padded to 64
};

// The header that a GGUF file's metadata and tensors were read from.
struct GgufHeaderBytes {
  absl::string_view bytes;
  uint64_t file_bytes = 0;  // of the whole file
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const Metadata& metadata() const = 0;
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  // Null when there is none of that name.
  virtual const TensorInfo* Find(absl::string_view name) const = 0;
  // Null: tensors lie in the file as their formats say, and Read gives their blocks.
  virtual const PackedImage* packed() const { return nullptr; }
  // What a pack keeps of the file; empty when that cannot be packed.
  virtual GgufHeaderBytes header() const { return {}; }
  // Reads bytes [offset, offset + size) of the tensor's data into `dst`. DATA_LOSS when the file
  // has become shorter.
  virtual absl::Status Read(const TensorInfo& tensor, uint64_t offset, uint64_t size,
                            void* dst) const = 0;
};

}  // namespace llm
