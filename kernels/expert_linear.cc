// Views of one expert's part of the arrays.
#include "kernels/expert_linear.h"

namespace llm {

LinearOutput OutputOfExpert(const ExpertLinearParams& params, const ExpertOutput& output, int64_t e,
                            size_t expert_bytes) {
  LinearOutput result;
  result.weight = output.weight;
  result.weight.rows = output.outputs;
  result.weight.data += static_cast<size_t>(e) * expert_bytes;
  if (output.bias != nullptr) result.bias = output.bias + e * output.outputs;
  result.out = output.out + params.expert_begin[static_cast<size_t>(e)] * output.outputs;
  result.out_stride = output.outputs;
  return result;
}

Activations RowsOfExpert(const ExpertLinearParams& params, int64_t e) {
  Activations a = params.activations;
  const int64_t begin = params.expert_begin[static_cast<size_t>(e)];
  a.rows = params.expert_begin[static_cast<size_t>(e) + 1] - begin;
  if (a.values != nullptr) a.values += begin * a.cols;
  if (a.quants != nullptr) {
    a.quants += begin * a.cols;
    a.scales += begin * (a.cols / kActivationGroup);
    a.sums += begin * (a.cols / kActivationSumGroup);
  }
  return a;
}

}  // namespace llm
