// Values are copied out of bytes, which need not be aligned.
#include "src/model/hub_companion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/quant/e4m3.h"
#include "kernels/quant/weight_format.h"
#include "src/loader/gguf_types.h"
#include "src/model/hub_present.h"

namespace llm {

absl::StatusOr<const SafeTensor*> FindCompanion(const SafetensorsSet& set,
                                                const std::string& name) {
  const auto found = set.tensors.find(name);
  if (found != set.tensors.end()) return &found->second;
  return absl::NotFoundError(absl::StrCat("tensor ", Printable(name), " beside it is missing"));
}

absl::Status WrongCompanion(const SafeTensor& tensor, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", Printable(tensor.name), ": ", SafeTypeName(tensor.type), " [",
                   absl::StrJoin(tensor.shape, ", "), "], expected ", wanted));
}

absl::Status CheckCompanion(const SafeTensor& tensor, SafeType type,
                            const std::vector<int64_t>& shape) {
  if (tensor.type == type && tensor.shape == shape) return absl::OkStatus();
  return WrongCompanion(tensor,
                        absl::StrCat(SafeTypeName(type), " [", absl::StrJoin(shape, ", "), "]"));
}

absl::Status CheckFloats(const SafeTensor& tensor) {
  return FormatOfHub(tensor.type).ok() ? absl::OkStatus() : WrongCompanion(tensor, "floats");
}

absl::Status ReadFloats(const SafeTensor& tensor, int64_t first, int64_t count,
                        std::vector<float>* values) {
  LLM_ASSIGN_OR_RETURN(const WeightFormat format, FormatOfHub(tensor.type));
  const uint64_t size = SafeTypeBytes(tensor.type);
  std::string bytes(static_cast<size_t>(count) * size, '\0');
  LLM_RETURN_IF_ERROR(tensor.file->Read(tensor.offset + static_cast<uint64_t>(first) * size,
                                        bytes.size(), bytes.data()));
  values->resize(static_cast<size_t>(count));
  GetWeightFormat(format).decode(bytes.data(), count, values->data());
  return absl::OkStatus();
}

absl::Status ReadByteRows(const SafeTensor& tensor, int64_t row_bytes, int64_t first, int64_t count,
                          std::string* bytes) {
  bytes->resize(static_cast<size_t>(count * row_bytes));
  return tensor.file->Read(tensor.offset + static_cast<uint64_t>(first * row_bytes), bytes->size(),
                           bytes->data());
}

absl::Status HasNan(const SafeTensor& tensor) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(tensor.name), ": has a NaN"));
}

absl::Status RefuseNans(const SafeTensor& tensor, const std::string& codes) {
  bool has_nan = false;
  for (const char code : codes) has_nan |= (static_cast<uint8_t>(code) & 0x7f) == kE4M3Nan;
  return has_nan ? HasNan(tensor) : absl::OkStatus();
}

}  // namespace llm
