// A constant each for format and group; pruning is checked to mean something.
#include "capi/translate_weights.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "capi/versioned_struct.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

struct Choice {
  uint32_t id;
  Quantization quantization;
};
constexpr Choice kChoices[] = {
    {LLM_WEIGHTS_INT8, {WeightFormat::kQ8_0, 0}},
    {LLM_WEIGHTS_INT8_G32, {WeightFormat::kQ8_0, 32}},
    {LLM_WEIGHTS_INT8_G64, {WeightFormat::kQ8_0, 64}},
    {LLM_WEIGHTS_INT8_G128, {WeightFormat::kQ8_0, 128}},
    {LLM_WEIGHTS_INT4_G32, {WeightFormat::kQ4_0, 32}},
    {LLM_WEIGHTS_INT4_G64, {WeightFormat::kQ4_0, 64}},
    {LLM_WEIGHTS_INT4_G128, {WeightFormat::kQ4_0, 128}},
    {LLM_WEIGHTS_INT4_ASYM_G32, {WeightFormat::kQ4_1, 32}},
    {LLM_WEIGHTS_INT4_ASYM_G64, {WeightFormat::kQ4_1, 64}},
    {LLM_WEIGHTS_INT4_ASYM_G128, {WeightFormat::kQ4_1, 128}},
    {LLM_WEIGHTS_FP8_E4M3, {WeightFormat::kF8_E4M3, 0}},
};

// `choice` is left alone by the default.
absl::Status ReadChoice(absl::string_view name, uint32_t id, std::optional<Quantization>* choice) {
  if (id == LLM_WEIGHTS_DEFAULT) return absl::OkStatus();
  choice->reset();
  if (id == LLM_WEIGHTS_STORED) return absl::OkStatus();
  for (const Choice& known : kChoices) {
    if (known.id != id) continue;
    *choice = known.quantization;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", id, " is unknown"));
}

absl::Status ReadPruning(uint32_t prune, float fraction, QuantizeOptions* options) {
  if (prune != LLM_PRUNE_MAGNITUDE && fraction != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("prune_fraction: ", fraction, ", but prune is not LLM_PRUNE_MAGNITUDE"));
  }
  switch (prune) {
    case LLM_PRUNE_NONE:
      return absl::OkStatus();
    case LLM_PRUNE_2_OF_4:
      options->pruning = Pruning::kTwoOfFour;
      return absl::OkStatus();
    case LLM_PRUNE_MAGNITUDE:
      if (!(fraction > 0 && fraction <= 1)) {  // NaN too
        return absl::InvalidArgumentError(
            absl::StrCat("prune_fraction: ", fraction, " is not above 0 and at most 1"));
      }
      options->pruning = Pruning::kMagnitude;
      options->pruned_part = fraction;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat("prune: ", prune, " is unknown"));
  }
}

// Pruned weights stay zero, which a minimum need not have as one of its values.
absl::Status CheckZeros(const QuantizeOptions& options) {
  if (options.pruning == Pruning::kNone) return absl::OkStatus();
  for (const auto& choice : {options.linear, options.experts}) {
    if (!choice || choice->format != WeightFormat::kQ4_1) continue;
    return absl::InvalidArgumentError(
        "prune: LLM_WEIGHTS_INT4_ASYM_* do not keep zeros: take LLM_WEIGHTS_INT4_*");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TranslateWeights(const llm_model_options& c, ModelOptions* model_options) {
  QuantizeOptions* options = &model_options->quantize;
  LLM_RETURN_IF_ERROR(ReadChoice("linear_weights", c.linear_weights, &options->linear));
  options->experts = options->linear;
  LLM_RETURN_IF_ERROR(ReadChoice("expert_weights", c.expert_weights, &options->experts));
  LLM_RETURN_IF_ERROR(ReadChoice("embedding_weights", c.embedding_weights, &options->embedding));
  LLM_RETURN_IF_ERROR(ReadChoice("head_weights", c.head_weights, &options->head));
  LLM_RETURN_IF_ERROR(ReadSwitch("requantize", c.requantize, false, &options->requantize));
  LLM_RETURN_IF_ERROR(ReadPruning(c.prune, c.prune_fraction, options));
  LLM_RETURN_IF_ERROR(CheckZeros(*options));
  if (!options->requantize || options->linear || options->experts || options->embedding ||
      options->head) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("requantize: no weights are to be quantised");
}

}  // namespace llm
