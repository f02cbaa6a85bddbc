// One element after the other.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/quantize.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {

absl::Status ReferenceCopyBlocks(const CopyBlocksParams& params, const Stream& stream) {
  const CopyBlocksParams& p = params;
  LLM_RETURN_IF_ERROR(CheckCopyBlocks(p));
  const size_t bytes = static_cast<size_t>(p.cols) * sizeof(float);
  RunTasks(stream, p.outer, [&](int64_t i, int /*worker*/) {
    for (int64_t j = 0; j < p.inner; ++j) {
      float* to = p.to + i * p.to_outer + j * p.to_inner;
      if (p.from == nullptr) {
        std::memset(to, 0, bytes);
      } else {
        std::memcpy(to, p.from + i * p.from_outer + j * p.from_inner, bytes);
      }
    }
  });
  return absl::OkStatus();
}

absl::Status ReferenceReorder(const ReorderParams& params, const Stream& stream) {
  const ReorderParams& p = params;
  LLM_RETURN_IF_ERROR(CheckReorder(p));
  const auto reorder = [&p](int64_t row, const float* order) {
    const float* from = p.from + row * p.cols;
    float* to = p.to + row * p.cols;
    for (int64_t i = 0; i < p.cols; ++i) to[i] = from[static_cast<int64_t>(order[i])];
  };
  if (p.order_begin.empty()) {
    RunTasks(stream, p.rows, [&](int64_t row, int /*worker*/) { reorder(row, p.order); });
    return absl::OkStatus();
  }
  const auto orders = static_cast<int64_t>(p.order_begin.size()) - 1;
  RunTasks(stream, orders, [&](int64_t i, int /*worker*/) {
    const int32_t* begin = &p.order_begin[static_cast<size_t>(i)];
    for (int64_t row = begin[0]; row < begin[1]; ++row) reorder(row, p.order + i * p.cols);
  });
  return absl::OkStatus();
}

absl::Status ReferenceQuantize(const QuantizeParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckQuantize(params));
  Activations output = params.activations;
  output.values = nullptr;  // they are the source
  RunTasks(stream, output.rows, [&](int64_t row, int /*worker*/) {
    ReferenceStore(output, row, 0, params.activations.values + row * output.cols, output.cols);
  });
  return absl::OkStatus();
}

absl::Status ReferenceSoftCap(const SoftCapParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckSoftCap(params));
  const double cap = double{params.cap};
  RunTasks(stream, params.rows, [&](int64_t row, int /*worker*/) {
    float* values = params.values + row * params.cols;
    for (int64_t i = 0; i < params.cols; ++i) {
      values[i] = static_cast<float>(cap * std::tanh(double{values[i]} / cap));
    }
  });
  return absl::OkStatus();
}

}  // namespace llm
