// The tensors that stand beside one with low bits: found by name, checked, read.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/base/status_macros.h"
#include "src/loader/safetensors_set.h"

namespace llm {

// NOT_FOUND with the name.
absl::StatusOr<const SafeTensor*> FindCompanion(const SafetensorsSet& set, const std::string& name);
// INVALID_ARGUMENT: "tensor x.scales: F16 [2, 3], expected ...".
absl::Status WrongCompanion(const SafeTensor& tensor, absl::string_view wanted);
// The same unless its type and shape are these.
absl::Status CheckCompanion(const SafeTensor& tensor, SafeType type,
                            const std::vector<int64_t>& shape);
// The same unless it is F32, F16 or BF16.
absl::Status CheckFloats(const SafeTensor& tensor);

// Elements [first, first + count) of a tensor that passed CheckFloats.
absl::Status ReadFloats(const SafeTensor& tensor, int64_t first, int64_t count,
                        std::vector<float>* values);

// Rows [first, first + count) of a tensor of bytes, row_bytes each.
absl::Status ReadByteRows(const SafeTensor& tensor, int64_t row_bytes, int64_t first, int64_t count,
                          std::string* bytes);
// INVALID_ARGUMENT where one of some E4M3 codes of `tensor` is a NaN, which no weight format has.
absl::Status RefuseNans(const SafeTensor& tensor, const std::string& codes);
absl::Status HasNan(const SafeTensor& tensor);

template <typename T>
absl::StatusOr<std::vector<T>> ReadAll(const SafeTensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.size_bytes / sizeof(T)));
  LLM_RETURN_IF_ERROR(tensor.file->Read(tensor.offset, tensor.size_bytes, values.data()));
  return values;
}

}  // namespace llm
