// What each scheme calls its tensors, and how they lie in them.
#include "src/model/hub_quantized.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/model/hub_codes.h"
#include "src/model/hub_companion.h"
#include "src/model/hub_f8.h"
#include "src/model/hub_floats.h"
#include "src/model/hub_forms.h"

namespace llm {
namespace {

absl::Status CheckShape(const SafeTensor& shape, int64_t rows, int64_t cols) {
  if (shape.type != SafeType::kI64) return WrongCompanion(shape, "I64 [2]");
  LLM_ASSIGN_OR_RETURN(const std::vector<int64_t> stated, ReadAll<int64_t>(shape));
  if (stated == std::vector<int64_t>{rows, cols}) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(shape.name), ": [",
                                                 absl::StrJoin(stated, ", "), "], the codes are [",
                                                 rows, ", ", cols, "]"));
}

absl::Status TakeScales(const SafeTensor& scales, CodeLayout* layout) {
  const size_t outputs = layout->scales_transposed ? 1 : 0;
  if (scales.shape.size() != 2 || scales.shape[outputs] != layout->codes.rows) {
    return WrongCompanion(scales,
                          layout->scales_transposed ? "[groups, outputs]" : "[outputs, groups]");
  }
  layout->scales = &scales;
  layout->groups = scales.shape[1 - outputs];
  return absl::OkStatus();
}

absl::Status TakeInputGroups(const std::string& name, const HubExtras& extras,
                             const SafetensorsSet& set, CodeLayout* layout) {
  const auto groups = set.tensors.find(name);
  if (groups != set.tensors.end()) {
    layout->groups_of_inputs = &groups->second;
  } else if (extras.needs_input_groups) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", Printable(name), ": missing, though the config says that groups have an order"));
  }
  return absl::OkStatus();
}

absl::StatusOr<HubPresented> Packed(const SafeTensor& codes, const std::string& stem,
                                    const HubExtras& extras, const SafetensorsSet& set) {
  if (codes.type != SafeType::kI32 || codes.shape.size() != 2) {
    return WrongCompanion(codes, "I32 [outputs, words]");
  }
  CodeLayout layout;
  layout.codes = {.words = &codes, .bits = extras.quantized_bits, .rows = codes.shape[0]};
  layout.codes.cols = codes.shape[1] * layout.codes.per_word();
  LLM_ASSIGN_OR_RETURN(const SafeTensor* scales, FindCompanion(set, stem + "weight_scale"));
  LLM_RETURN_IF_ERROR(TakeScales(*scales, &layout));
  LLM_ASSIGN_OR_RETURN(const SafeTensor* shape, FindCompanion(set, stem + "weight_shape"));
  LLM_RETURN_IF_ERROR(CheckShape(*shape, layout.codes.rows, layout.codes.cols));
  if (extras.has_zero_points) {
    layout.zeros = {.bits = layout.codes.bits,
                    .rows = layout.codes.rows,
                    .cols = layout.groups,
                    .packs_rows = true};
    LLM_ASSIGN_OR_RETURN(layout.zeros.words, FindCompanion(set, stem + "weight_zero_point"));
  }
  LLM_RETURN_IF_ERROR(TakeInputGroups(stem + "weight_g_idx", extras, set, &layout));
  return PresentCodes(layout);
}

absl::StatusOr<HubPresented> Int8(const SafeTensor& codes, const std::string& stem,
                                  const HubExtras& extras, const SafetensorsSet& set) {
  if (codes.type != SafeType::kI8 || codes.shape.size() != 2) {
    return WrongCompanion(codes, "I8 [outputs, inputs]");
  }
  CodeLayout layout;
  layout.codes = {.words = &codes, .bits = 8, .rows = codes.shape[0], .cols = codes.shape[1]};
  layout.is_signed = true;
  LLM_ASSIGN_OR_RETURN(const SafeTensor* scales, FindCompanion(set, stem + "weight_scale"));
  LLM_RETURN_IF_ERROR(TakeScales(*scales, &layout));
  LLM_RETURN_IF_ERROR(TakeInputGroups(stem + "weight_g_idx", extras, set, &layout));
  return PresentCodes(layout);
}

absl::StatusOr<HubPresented> Mxfp4(const SafeTensor& codes, const std::string& stem,
                                   const SafetensorsSet& set) {
  constexpr int64_t kHalfBlock = 16;
  LLM_ASSIGN_OR_RETURN(const SafeTensor* scales, FindCompanion(set, stem + "weight_scale"));
  if (codes.type != SafeType::kU8 || codes.shape.size() != 2 || codes.shape[1] % kHalfBlock != 0) {
    return WrongCompanion(codes, "U8 [outputs, 16 bytes a block]");
  }
  const int64_t rows = codes.shape[0];
  const int64_t blocks = codes.shape[1] / kHalfBlock;
  LLM_RETURN_IF_ERROR(CheckCompanion(*scales, SafeType::kU8, {rows, blocks}));
  return PresentDerived(WeightFormat::kMXFP4, {rows, blocks * 2 * kHalfBlock},
                        Mxfp4Rows(codes, *scales, 0, 1));
}

// Every stored zero point is the one that the config promises.
absl::Status CheckSymmetric(const PackedInts& zeros, int stored) {
  LLM_RETURN_IF_ERROR(CheckCompanion(*zeros.words, SafeType::kI32, zeros.shape()));
  uint32_t wanted = 0;
  for (int64_t i = 0; i < zeros.per_word(); ++i) {
    wanted |= static_cast<uint32_t>(stored) << (i * zeros.bits);
  }
  LLM_ASSIGN_OR_RETURN(const std::vector<uint32_t> words, ReadAll<uint32_t>(*zeros.words));
  for (const uint32_t word : words) {
    if (word == wanted) continue;
    return absl::UnimplementedError(
        absl::StrCat("tensor ", Printable(zeros.words->name),
                     ": zero points that are not in the middle, although the config says sym"));
  }
  return absl::OkStatus();
}

// GPTQ packs inputs of the codes and outputs of the zero points, AWQ outputs of both.
absl::StatusOr<HubPresented> ByGroups(const SafeTensor& codes, const std::string& stem,
                                      const HubExtras& extras, const SafetensorsSet& set) {
  const bool awq = extras.quantization == HubQuantization::kAwq;
  if (codes.type != SafeType::kI32 || codes.shape.size() != 2) {
    return WrongCompanion(
        codes, awq ? "I32 [inputs, words of outputs]" : "I32 [words of inputs, outputs]");
  }
  CodeLayout layout;
  layout.codes = {.words = &codes,
                  .bits = extras.quantized_bits,
                  .transposed = true,
                  .packs_rows = awq,
                  .interleaved = awq};
  const int64_t per_word = layout.codes.per_word();
  layout.codes.rows = codes.shape[1] * (awq ? per_word : 1);
  layout.codes.cols = codes.shape[0] * (awq ? 1 : per_word);
  layout.scales_transposed = true;
  LLM_ASSIGN_OR_RETURN(const SafeTensor* scales, FindCompanion(set, stem + "scales"));
  LLM_RETURN_IF_ERROR(TakeScales(*scales, &layout));
  PackedInts zeros = {.bits = layout.codes.bits,
                      .rows = layout.codes.rows,
                      .cols = layout.groups,
                      .transposed = true,
                      .packs_rows = true,
                      .interleaved = awq};
  LLM_ASSIGN_OR_RETURN(zeros.words, FindCompanion(set, stem + "qzeros"));
  if (extras.has_zero_points) {
    layout.zeros = zeros;
    layout.zero_bias = extras.zero_point_bias;
  } else {
    const int middle = 1 << (layout.codes.bits - 1);
    LLM_RETURN_IF_ERROR(CheckSymmetric(zeros, middle - extras.zero_point_bias));
  }
  LLM_RETURN_IF_ERROR(TakeInputGroups(stem + "g_idx", extras, set, &layout));
  return PresentCodes(layout);
}

}  // namespace

absl::StatusOr<HubPresented> PresentQuantized(const SafeTensor& tensor, const HubExtras& extras,
                                              const SafetensorsSet& set) {
  const std::string stem = tensor.name.substr(0, tensor.name.rfind('.') + 1);
  const bool may_have_order = extras.quantization == HubQuantization::kPacked ||
                              extras.quantization == HubQuantization::kInt8;
  if (!may_have_order && set.tensors.count(stem + "weight_g_idx") != 0) {
    return absl::UnimplementedError(absl::StrCat(
        "tensor ", Printable(stem), "weight_g_idx: groups of integers alone have one"));
  }
  switch (extras.quantization) {
    case HubQuantization::kPacked:
      return Packed(tensor, stem, extras, set);
    case HubQuantization::kInt8:
      return Int8(tensor, stem, extras, set);
    case HubQuantization::kMxfp4:
      return Mxfp4(tensor, stem, set);
    case HubQuantization::kGptq:
    case HubQuantization::kAwq:
      return ByGroups(tensor, stem, extras, set);
    case HubQuantization::kF8:
      return PresentF8(tensor, stem, extras, set);
    case HubQuantization::kMxfp8:
      return PresentMxfp8(tensor, stem, set);
    case HubQuantization::kNvfp4:
      return PresentNvfp4(tensor, stem, set);
    case HubQuantization::kSparse24:
      return PresentSparse24(tensor, stem, set);
    case HubQuantization::kNone:
      break;
  }
  return absl::UnimplementedError("low bits that the config does not announce");
}

}  // namespace llm
