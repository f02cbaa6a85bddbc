// Checks of the ops on rows and weights; those on keys and values are in checks_kv.cc.
#include "kernels/checks.h"

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

absl::Status CheckWeight(const char* op, const PackedWeight& weight) {
  const WeightFormatInfo* info = FindWeightFormat(static_cast<int32_t>(weight.format));
  if (info == nullptr) {
    return Invalid(op, ": unknown weight format ", static_cast<int32_t>(weight.format));
  }
  if (weight.rows < 0 || weight.cols < 1 || weight.cols % info->block_size != 0) {
    return Invalid(op, ": weight [", weight.rows, ", ", weight.cols, "] is not in whole blocks of ",
                   info->block_size, " (", info->name, ")");
  }
  return absl::OkStatus();
}

}  // namespace

bool ReadsQuants(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
    case WeightFormat::kF8_E4M3:
    case WeightFormat::kMXFP8:
    case WeightFormat::kBF16_24:
      return false;
    default:
      return true;
  }
}

absl::Status CheckActivations(const char* op, const Activations& activations) {
  const Activations& a = activations;
  if (a.rows < 0 || a.cols < 1) {
    return Invalid(op, ": activations are [", a.rows, ", ", a.cols, "]");
  }
  if (a.values == nullptr && a.quants == nullptr) {
    return Invalid(op, ": activations have neither values nor quants");
  }
  if (a.quants == nullptr) return absl::OkStatus();
  if (a.scales == nullptr || a.sums == nullptr) {
    return Invalid(op, ": quantised activations need scales and sums");
  }
  if (a.cols % kActivationGroup != 0) {
    return Invalid(op, ": ", a.cols, " columns cannot be quantised in groups of ",
                   kActivationGroup);
  }
  return absl::OkStatus();
}

absl::Status CheckPackRows(const PackRowsParams& params) {
  const PackRowsParams& p = params;
  LLM_RETURN_IF_ERROR(CheckWeight("pack_rows", p.weight));
  const bool inside = p.row_begin >= 0 && p.num_rows >= 0 && p.row_begin <= p.weight.rows &&
                      p.num_rows <= p.weight.rows - p.row_begin;
  if (!inside || p.row_begin % kPackTileRows != 0 ||
      (p.num_rows % kPackTileRows != 0 && p.row_begin + p.num_rows != p.weight.rows)) {
    return Invalid("pack_rows: ", p.num_rows, " rows from ", p.row_begin,
                   " are not whole tiles of a weight of ", p.weight.rows, " rows");
  }
  if (p.num_rows > 0 && (p.source == nullptr || p.destination == nullptr)) {
    return Invalid("pack_rows: source or destination is null");
  }
  return absl::OkStatus();
}

absl::Status CheckLinear(const LinearParams& params) {
  const Activations& a = params.activations;
  LLM_RETURN_IF_ERROR(CheckActivations("linear", a));
  for (size_t i = 0; i < params.outputs.size(); ++i) {
    const LinearOutput& output = params.outputs[i];
    LLM_RETURN_IF_ERROR(CheckWeight("linear", output.weight));
    if (output.weight.cols != a.cols) {
      return Invalid("linear: weight ", i, " has ", output.weight.cols, " columns, activations ",
                     a.cols);
    }
    if (a.values == nullptr && !ReadsQuants(output.weight.format)) {
      return Invalid("linear: weight ", i, " (", GetWeightFormat(output.weight.format).name,
                     ") needs activations in f32");
    }
    if (output.out_stride < output.weight.rows) {
      return Invalid("linear: weight ", i, " has ", output.weight.rows, " rows, out_stride is ",
                     output.out_stride);
    }
    if (a.rows > 0 && output.weight.rows > 0 &&
        (output.weight.data == nullptr || output.out == nullptr)) {
      return Invalid("linear: data or out of weight ", i, " is null");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEmbed(const EmbedParams& params) {
  LLM_RETURN_IF_ERROR(CheckWeight("embed", params.table));
  if (!params.token_ids.empty() && (params.table.data == nullptr || params.out == nullptr)) {
    return Invalid("embed: table or out is null");
  }
  const PendingTokens& pending = params.pending;
  if ((pending.num_rows > 0 && pending.argmax == nullptr) ||
      (pending.num_draws > 0 && pending.drawn == nullptr)) {
    return Invalid("embed: pending tokens are null");
  }
  for (size_t i = 0; i < params.token_ids.size(); ++i) {
    if (params.token_ids[i] >= params.table.rows ||
        (params.token_ids[i] < 0 && !IsPending(params.token_ids[i], params.pending))) {
      return Invalid("embed: token ", i, " has id ", params.token_ids[i], ", the table ",
                     params.table.rows, " rows");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRmsNorm(const RmsNormParams& params) {
  LLM_RETURN_IF_ERROR(CheckActivations("rms_norm", params.output));
  if (params.weight == nullptr || (params.input == nullptr && params.residual == nullptr)) {
    return Invalid("rms_norm: weight, or both input and residual are null");
  }
  return absl::OkStatus();
}

absl::Status CheckGate(const GateParams& params) {
  LLM_RETURN_IF_ERROR(CheckActivations("gate", params.output));
  const int32_t activation = static_cast<int32_t>(params.activation);
  if (activation < 0 || activation > static_cast<int32_t>(GateActivation::kClampedSwiglu)) {
    return Invalid("gate: unknown activation ", activation);
  }
  if (params.activation == GateActivation::kClampedSwiglu && !(params.limit > 0)) {
    return Invalid("gate: limit ", params.limit);
  }
  if (params.gate == nullptr || params.up == nullptr) return Invalid("gate: gate or up is null");
  if (params.input_stride < params.output.cols) {
    return Invalid("gate: ", params.output.cols, " columns, input_stride is ", params.input_stride);
  }
  return absl::OkStatus();
}

absl::Status CheckRopeTable(const RopeTableParams& params) {
  if (params.cos_sin == nullptr && !params.positions.empty() && !params.inv_freq.empty()) {
    return Invalid("rope_table: cos_sin is null");
  }
  return absl::OkStatus();
}

absl::Status CheckRowStats(const RowStatsParams& params) {
  const RowStatsParams& p = params;
  if (p.rows < 0 || p.cols < 1 || p.cols > INT32_MAX) {
    return Invalid("row_stats: logits are [", p.rows, ", ", p.cols, "]");
  }
  if (p.rows > 0 && (p.logits == nullptr || p.argmax == nullptr || p.max == nullptr ||
                     p.log_sum_exp == nullptr)) {
    return Invalid("row_stats: logits or an output is null");
  }
  return absl::OkStatus();
}

}  // namespace llm
