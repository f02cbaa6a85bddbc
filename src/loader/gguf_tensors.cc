// All sizes are computed with checked arithmetic: a product that wraps would let a tensor pass the
// bounds check.
#include "src/loader/gguf_tensors.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/loader/gguf_types.h"

namespace llm {
namespace {

constexpr uint64_t kMaxNameBytes = 65535;  // as for keys; ggml itself stops at 63
constexpr uint64_t kMinRecordBytes =
    8 + 4 + 8 + 4 + 8;  // name length, rank, one dimension, type, offset

absl::Status ParseDims(GgufCursor* cursor, GgufTensorRecord* record) {
  LLM_ASSIGN_OR_RETURN(record->num_dims, cursor->Number<uint32_t>("number of dimensions"));
  if (record->num_dims < 1 || record->num_dims > kMaxGgufDims) {
    return absl::InvalidArgumentError(
        absl::StrCat(record->num_dims, " dimensions, not 1 to ", kMaxGgufDims));
  }
  for (uint32_t i = 0; i < record->num_dims; ++i) {
    LLM_ASSIGN_OR_RETURN(record->dims[i], cursor->Number<uint64_t>("dimension"));
  }
  return absl::OkStatus();
}

absl::Status ParseRecord(GgufCursor* cursor, GgufTensorRecord* record) {
  LLM_RETURN_IF_ERROR(ParseDims(cursor, record));
  LLM_ASSIGN_OR_RETURN(record->ggml_type, cursor->Number<uint32_t>("type"));
  LLM_ASSIGN_OR_RETURN(record->offset, cursor->Number<uint64_t>("offset"));
  return absl::OkStatus();
}

const WeightFormatInfo* FormatOrNull(uint32_t ggml_type) {
  return ggml_type > INT32_MAX ? nullptr : FindWeightFormat(static_cast<int32_t>(ggml_type));
}

absl::StatusOr<std::vector<int64_t>> RowMajorShape(const GgufTensorRecord& record) {
  std::vector<int64_t> shape;
  for (uint32_t i = record.num_dims; i-- > 0;) {
    if (record.dims[i] == 0 || record.dims[i] > INT64_MAX) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " is ", record.dims[i]));
    }
    shape.push_back(static_cast<int64_t>(record.dims[i]));
  }
  return shape;
}

absl::StatusOr<uint64_t> DataBytes(const std::vector<int64_t>& shape,
                                   const WeightFormatInfo& format) {
  const int64_t cols = shape.back();
  if (cols % format.block_size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of ", cols, " elements are no multiple of the ", format.block_size,
                     " in a block of ", format.name));
  }
  std::optional<int64_t> bytes =
      CheckedMul(cols / format.block_size, static_cast<int64_t>(format.block_bytes));
  // The element count must fit as well: callers multiply the dimensions without checking again.
  std::optional<int64_t> elements = cols;
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (bytes.has_value()) bytes = CheckedMul(*bytes, shape[i]);
    if (elements.has_value()) elements = CheckedMul(*elements, shape[i]);
  }
  if (!bytes.has_value() || !elements.has_value()) {
    return absl::InvalidArgumentError("its size does not fit 64 bits");
  }
  return static_cast<uint64_t>(*bytes);
}

// Sets where the tensor lies in the file.
absl::Status Place(const GgufTensorRecord& record, const GgufDataSection& data,
                   TensorInfo* tensor) {
  if (record.offset % data.alignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("offset ", record.offset, " is no multiple of ", data.alignment));
  }
  const std::optional<uint64_t> begin = CheckedAdd(data.begin, record.offset);
  if (!begin.has_value() || *begin > data.file_size ||
      tensor->size_bytes > data.file_size - *begin) {
    return absl::InvalidArgumentError(absl::StrCat(tensor->size_bytes, " bytes at data offset ",
                                                   record.offset,
                                                   " lie outside the file: its data begins at ",
                                                   data.begin, " and it ends at ", data.file_size));
  }
  tensor->file_offset = *begin;
  return absl::OkStatus();
}

absl::Status Resolve(const GgufTensorRecord& record, const GgufDataSection& data,
                     TensorInfo* tensor) {
  const WeightFormatInfo* format = FormatOrNull(record.ggml_type);
  if (format == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(DescribeTensorType(record.ggml_type), " is not supported"));
  }
  tensor->format = format->format;
  LLM_ASSIGN_OR_RETURN(tensor->shape, RowMajorShape(record));
  LLM_ASSIGN_OR_RETURN(tensor->size_bytes, DataBytes(tensor->shape, *format));
  return Place(record, data, tensor);
}

absl::Status CheckNoOverlap(const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> by_offset;
  by_offset.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return a->file_offset < b->file_offset;
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& before = *by_offset[i - 1];
    if (by_offset[i]->file_offset < before.file_offset + before.size_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(by_offset[i]->name),
                                                     ": overlaps tensor ", Printable(before.name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<GgufTensorRecord>> ParseGgufTensors(GgufCursor* cursor,
                                                               uint64_t num_tensors,
                                                               const LoaderLimits& limits) {
  if (num_tensors > limits.max_tensors || num_tensors > cursor->remaining() / kMinRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_tensors, " tensors are more than the limit of ", limits.max_tensors,
                     " or than fit ", cursor->DescribeRemaining()));
  }
  std::vector<GgufTensorRecord> records;
  records.reserve(static_cast<size_t>(num_tensors));
  for (uint64_t i = 0; i < num_tensors; ++i) {
    GgufTensorRecord record = {};
    absl::StatusOr<ByteRange> name = cursor->String("name", kMaxNameBytes);
    if (!name.ok()) return At(absl::StrCat("tensor number ", i), name.status());
    record.name = *name;
    if (absl::Status rest = ParseRecord(cursor, &record); !rest.ok()) {
      return At(absl::StrCat("tensor ", Printable(cursor->bytes().View(record.name))), rest);
    }
    records.push_back(record);
  }
  return records;
}

absl::StatusOr<std::vector<TensorInfo>> ResolveGgufTensors(
    const std::vector<GgufTensorRecord>& records, const HeaderBytes& bytes,
    const GgufDataSection& data) {
  std::vector<TensorInfo> tensors;
  tensors.reserve(records.size());
  for (const GgufTensorRecord& record : records) {
    TensorInfo tensor = {};
    tensor.name = std::string(bytes.View(record.name));
    if (absl::Status resolved = Resolve(record, data, &tensor); !resolved.ok()) {
      return At(absl::StrCat("tensor ", Printable(tensor.name)), resolved);
    }
    tensors.push_back(std::move(tensor));
  }
  LLM_RETURN_IF_ERROR(CheckNoOverlap(tensors));
  return tensors;
}

}  // namespace llm
