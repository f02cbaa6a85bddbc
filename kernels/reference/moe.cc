// Rows of experts: gathered, multiplied one expert after the other, combined.
#include <cstring>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

template <typename T>
void CopyRow(const T* from, int64_t from_row, T* to, int64_t to_row, int64_t size) {
  std::memcpy(to + to_row * size, from + from_row * size, static_cast<size_t>(size) * sizeof(T));
}

void GatherRow(const MoeGatherParams& p, int64_t row) {
  const int64_t token = p.row_tokens[static_cast<size_t>(row)];
  const int64_t cols = p.input.cols;
  if (p.output.values != nullptr) {
    CopyRow<float>(p.input.values, token, p.output.values, row, cols);
  }
  if (p.output.quants == nullptr) return;
  CopyRow<int8_t>(p.input.quants, token, p.output.quants, row, cols);
  CopyRow<float>(p.input.scales, token, p.output.scales, row, cols / kActivationGroup);
  CopyRow<int16_t>(p.input.sums, token, p.output.sums, row, cols / kActivationSumGroup);
}

void CombineToken(const MoeCombineParams& p, int64_t token) {
  const float* weights = p.weights + token * p.experts_per_token;
  const int32_t* rows = p.rows + token * p.experts_per_token;
  for (int64_t c = 0; c < p.cols; ++c) {
    double sum = 0;
    for (int j = 0; j < p.experts_per_token; ++j) {
      sum += double{weights[j]} * double{p.input[rows[j] * p.cols + c]};
    }
    if (p.shared != nullptr) sum += double{p.shared[token * p.cols + c]};
    p.out[token * p.cols + c] = static_cast<float>(sum);
  }
}

}  // namespace

absl::Status ReferenceMoeGather(const MoeGatherParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckMoeGather(params));
  RunTasks(stream, params.output.rows,
           [&](int64_t row, int /*worker*/) { GatherRow(params, row); });
  return absl::OkStatus();
}

absl::Status ReferenceMoeCombine(const MoeCombineParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckMoeCombine(params));
  RunTasks(stream, params.num_tokens,
           [&](int64_t token, int /*worker*/) { CombineToken(params, token); });
  return absl::OkStatus();
}

absl::Status ReferenceExpertLinear(const ExpertLinearParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckExpertLinear(params));
  const int64_t num_experts = NumExperts(params);
  for (const ExpertOutput& output : params.outputs) {
    LLM_ASSIGN_OR_RETURN(
        const size_t expert_bytes,
        ReferencePackedBytes(output.weight.format, output.outputs, output.weight.cols));
    for (int64_t e = 0; e < num_experts; ++e) {
      const Activations rows = RowsOfExpert(params, e);
      if (rows.rows == 0) continue;
      const LinearOutput one = OutputOfExpert(params, output, e, expert_bytes);
      LLM_RETURN_IF_ERROR(ReferenceLinear({.activations = rows,
                                           .outputs = absl::MakeConstSpan(&one, 1),
                                           .round_to_bf16 = params.round_to_bf16},
                                          stream));
    }
  }
  return absl::OkStatus();
}

}  // namespace llm
