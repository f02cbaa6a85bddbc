// Views of one expert's part of the arrays.
#include "kernels/expert_linear.h"

namespace llm {
namespace {

struct RowRange {
  int64_t begin;
  int64_t end;
};

RowRange RowsOf(const ExpertLinearParams& params, int64_t e) {
  if (params.expert_begin.empty()) {
    const int64_t share = params.activations.rows / NumExperts(params);
    return {e * share, (e + 1) * share};
  }
  return {params.expert_begin[static_cast<size_t>(e)],
          params.expert_begin[static_cast<size_t>(e) + 1]};
}

}  // namespace

int64_t NumExperts(const ExpertLinearParams& params) {
  if (!params.expert_begin.empty()) return static_cast<int64_t>(params.expert_begin.size()) - 1;
  if (params.outputs.empty() || params.outputs[0].outputs < 1) return 0;
  return params.outputs[0].weight.rows / params.outputs[0].outputs;
}

LinearOutput OutputOfExpert(const ExpertLinearParams& params, const ExpertOutput& output, int64_t e,
                            size_t expert_bytes) {
  LinearOutput result;
  result.weight = output.weight;
  result.weight.rows = output.outputs;
  result.weight.data += static_cast<size_t>(e) * expert_bytes;
  if (output.bias != nullptr) result.bias = output.bias + e * output.outputs;
  result.out = output.out + RowsOf(params, e).begin * output.outputs;
  result.out_stride = output.outputs;
  return result;
}

Activations RowsOfExpert(const ExpertLinearParams& params, int64_t e) {
  Activations a = params.activations;
  const auto [begin, end] = RowsOf(params, e);
  a.rows = end - begin;
  if (a.values != nullptr) a.values += begin * a.cols;
  if (a.quants != nullptr) {
    a.quants += begin * a.cols;
    a.scales += begin * (a.cols / kActivationGroup);
    a.sums += begin * (a.cols / kActivationSumGroup);
  }
  return a;
}

}  // namespace llm
