// Makes the header of a GGUF file (version 3), as ReadGgufHeader reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/quant/weight_format.h"
#include "src/loader/gguf_types.h"

namespace llm {

// Keys and tensors appear in the order in which they are added; none twice.
class GgufWriter {
 public:
  static constexpr uint64_t kAlignment = 32;  // of the header's end and of a tensor's offset

  void AddInt(absl::string_view key, int64_t value);
  void AddFloat(absl::string_view key, double value);
  void AddBool(absl::string_view key, bool value);
  void AddString(absl::string_view key, absl::string_view value);
  void AddInts(absl::string_view key, absl::Span<const int32_t> values);
  void AddFloats(absl::string_view key, absl::Span<const float> values);
  void AddStrings(absl::string_view key, absl::Span<const std::string> values);
  // `count` keys with their values, as the header of a file has them.
  void CopyValues(absl::string_view values, uint64_t count);
  // `shape` is row-major, of 1 to 4 dimensions; `offset` counts from the header's end.
  void AddTensor(absl::string_view name, WeightFormat format, absl::Span<const int64_t> shape,
                 uint64_t offset);

  // Padded to the alignment.
  std::string Finish() const;

 private:
  void BeginValue(absl::string_view key, GgufType type);
  void BeginArray(absl::string_view key, GgufType type, uint64_t count);

  uint64_t num_values_ = 0;
  uint64_t num_tensors_ = 0;
  std::string values_;
  std::string tensors_;
};

}  // namespace llm
