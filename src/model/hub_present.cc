// Shapes are checked here, so that what computes bytes need not.
#include "src/model/hub_present.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "src/base/status_macros.h"
#include "src/model/hub_f8.h"
#include "src/model/hub_forms.h"
#include "src/model/hub_quantized.h"

namespace llm {

absl::StatusOr<WeightFormat> FormatOfHub(SafeType type) {
  switch (type) {
    case SafeType::kF32:
      return WeightFormat::kF32;
    case SafeType::kF16:
      return WeightFormat::kF16;
    case SafeType::kBF16:
      return WeightFormat::kBF16;
    default:
      return absl::UnimplementedError(
          absl::StrCat("dtype ", SafeTypeName(type), " is not supported for weights"));
  }
}

absl::StatusOr<HubPresented> PresentDerived(WeightFormat format, std::vector<int64_t> shape,
                                            std::shared_ptr<const DerivedBytes> derived) {
  const WeightFormatInfo& info = GetWeightFormat(format);
  if (shape.back() % info.block_size != 0) {
    return absl::UnimplementedError(
        absl::StrCat(shape.back(), " inputs are no multiple of ", info.block_size));
  }
  int64_t bytes = RowBytes(info, shape.back());
  for (size_t i = 0; i + 1 < shape.size(); ++i) bytes *= shape[i];
  HubPresented presented = {format, std::move(shape), {}};
  presented.part.size_bytes = static_cast<uint64_t>(bytes);
  presented.part.derived = std::move(derived);
  return presented;
}

namespace {

absl::Status WrongShape(const SafeTensor& tensor, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("shape [", absl::StrJoin(tensor.shape, ", "), "], expected ", wanted));
}

HubPresented Whole(const SafeTensor& tensor, WeightFormat format) {
  return {format,
          tensor.shape,
          {.begin = 0,
           .size_bytes = tensor.size_bytes,
           .file = tensor.file,
           .offset = tensor.offset,
           .derived = nullptr}};
}

absl::StatusOr<HubPresented> EveryOther(const SafeTensor& tensor, WeightFormat format,
                                        int64_t first) {
  if (tensor.shape.size() != 2 || tensor.shape[1] % 2 != 0) {
    return WrongShape(tensor, "[parts, an even number]");
  }
  const TensorView view = {.parts = 1,
                           .rows = tensor.shape[0],
                           .cols = tensor.shape[1] / 2,
                           .first = first,
                           .part_step = 0,
                           .row_step = tensor.shape[1],
                           .col_step = 2};
  return PresentDerived(format, {view.rows, view.cols}, ViewOf(tensor, view));
}

absl::StatusOr<HubPresented> Transposed(const SafeTensor& tensor, WeightFormat format,
                                        int64_t first, int64_t step) {
  if (tensor.shape.size() != 3 || tensor.shape[2] % step != 0) {
    return WrongShape(tensor, "[parts, cols, rows]");
  }
  const TensorView view = {.parts = tensor.shape[0],
                           .rows = tensor.shape[2] / step,
                           .cols = tensor.shape[1],
                           .first = first,
                           .part_step = tensor.shape[1] * tensor.shape[2],
                           .row_step = step,
                           .col_step = tensor.shape[2]};
  return PresentDerived(format, {view.parts, view.rows, view.cols}, ViewOf(tensor, view));
}

absl::StatusOr<HubPresented> OfHeads(const SafeTensor& tensor, WeightFormat format, bool keys,
                                     const HubExtras& extras) {
  const int64_t head_rows = extras.key_rows + extras.value_rows;
  if (extras.key_rows < 1 || extras.value_rows < 1 || tensor.shape.size() != 2 ||
      tensor.shape[0] % head_rows != 0) {
    return WrongShape(tensor, absl::StrCat("[heads * ", head_rows, ", cols]"));
  }
  const int64_t cols = tensor.shape[1];
  TensorView view = {.parts = tensor.shape[0] / head_rows,
                     .rows = extras.value_rows,
                     .cols = cols,
                     .first = extras.key_rows * cols,
                     .part_step = head_rows * cols,
                     .row_step = cols,
                     .col_step = 1};
  if (keys) {
    view.rows = cols;
    view.cols = extras.key_rows;
    view.first = 0;
    view.row_step = 1;
    view.col_step = cols;
  }
  return PresentDerived(format, {view.parts, view.rows, view.cols}, ViewOf(tensor, view));
}

absl::StatusOr<HubPresented> Mxfp4(const SafeTensor& blocks, int64_t first, int64_t step,
                                   const SafetensorsSet& set) {
  constexpr int64_t kHalfBlock = 16;
  const std::vector<int64_t>& shape = blocks.shape;
  if (blocks.type != SafeType::kU8 || shape.size() != 4 || shape[3] != kHalfBlock ||
      shape[1] % step != 0) {
    return WrongShape(blocks, "U8 [parts, rows, blocks, 16]");
  }
  const std::string name = absl::StrCat(absl::StripSuffix(blocks.name, "_blocks"), "_scales");
  const auto scales = set.tensors.find(name);
  if (scales == set.tensors.end()) {
    return absl::NotFoundError(absl::StrCat("its scales, ", name, ", are missing"));
  }
  const std::vector<int64_t> wanted(shape.begin(), shape.end() - 1);
  if (scales->second.type != SafeType::kU8 || scales->second.shape != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("its scales, ", name, ", are no U8 [", absl::StrJoin(wanted, ", "), "]"));
  }
  return PresentDerived(WeightFormat::kMXFP4,
                        {shape[0], shape[1] / step, shape[2] * 2 * kHalfBlock},
                        Mxfp4Rows(blocks, scales->second, first, step));
}

}  // namespace

absl::StatusOr<HubPresented> PresentTensor(const SafeTensor& tensor, HubForm form,
                                           const HubExtras& extras, const SafetensorsSet& set) {
  const bool of_heads = form == HubForm::kKeyRows || form == HubForm::kValueRows;
  if (of_heads && tensor.type == SafeType::kF8E4M3) {
    return PresentF8Heads(tensor, form == HubForm::kKeyRows, extras, set);
  }
  if (form == HubForm::kQuantized) return PresentQuantized(tensor, extras, set);
  if (form == HubForm::kMxfp4) return Mxfp4(tensor, 0, 1, set);
  if (form == HubForm::kMxfp4Even) return Mxfp4(tensor, 0, 2, set);
  if (form == HubForm::kMxfp4Odd) return Mxfp4(tensor, 1, 2, set);
  LLM_ASSIGN_OR_RETURN(const WeightFormat format, FormatOfHub(tensor.type));
  switch (form) {
    case HubForm::kOnePlus:
      if (tensor.shape.size() != 1) return WrongShape(tensor, "one dimension");
      return PresentDerived(WeightFormat::kF32, tensor.shape, OnePlus(tensor, format));
    case HubForm::kEven:
      return EveryOther(tensor, format, 0);
    case HubForm::kOdd:
      return EveryOther(tensor, format, 1);
    case HubForm::kTransposed:
      return Transposed(tensor, format, 0, 1);
    case HubForm::kTransposedEven:
      return Transposed(tensor, format, 0, 2);
    case HubForm::kTransposedOdd:
      return Transposed(tensor, format, 1, 2);
    case HubForm::kKeyRows:
      return OfHeads(tensor, format, true, extras);
    case HubForm::kValueRows:
      return OfHeads(tensor, format, false, extras);
    default:
      return Whole(tensor, format);
  }
}

}  // namespace llm
