// The check of `sample`: ids and ranges are those of requests.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/sample_math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("sample: ", args...));
}

absl::Status CheckDraw(const SampleParams& p, size_t index) {
  const RowDraw& draw = p.draws[index];
  const int32_t row_before = index == 0 ? -1 : p.draws[index - 1].row;
  const int32_t edits_before = index == 0 ? 0 : p.draws[index - 1].edits_end;
  if (draw.row <= row_before || draw.row >= p.rows) {
    return Invalid("draw ", index, " is of row ", draw.row, " of ", p.rows, ", behind ",
                   row_before);
  }
  if (draw.edits_begin < edits_before || draw.edits_end < draw.edits_begin ||
      static_cast<size_t>(draw.edits_end) > p.edits.size()) {
    return Invalid("draw ", index, " has edits ", draw.edits_begin, " to ", draw.edits_end, " of ",
                   p.edits.size(), ", behind ", edits_before);
  }
  if (draw.num_top < 0 || draw.num_top > p.max_top || draw.num_top > p.cols) {
    return Invalid("draw ", index, " wants ", draw.num_top, " likely ids of ", p.cols,
                   ", there is room for ", p.max_top);
  }
  if (!(draw.temperature >= 0) || !std::isfinite(draw.temperature) || draw.top_k < 0 ||
      std::isnan(draw.top_p) || !(draw.log_min_p <= 0)) {
    return Invalid("draw ", index, ": temperature ", draw.temperature, ", top_k ", draw.top_k,
                   ", top_p ", draw.top_p, ", log_min_p ", draw.log_min_p);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSample(const SampleParams& params) {
  const SampleParams& p = params;
  if (p.rows < 0 || p.cols < 1 || p.cols > kMaxDrawCols) {
    return Invalid("logits are [", p.rows, ", ", p.cols, "]");
  }
  if (p.max_top < 0 || p.max_top > kMaxTopLogprobs) return Invalid("max_top is ", p.max_top);
  if (p.draws.empty()) return absl::OkStatus();
  if (p.logits == nullptr || p.argmax == nullptr || p.max == nullptr || p.log_sum_exp == nullptr ||
      p.drawn == nullptr || (p.max_top > 0 && p.top == nullptr) ||
      (!p.edits.empty() && p.originals == nullptr)) {
    return Invalid("logits, their measures, or an output is null");
  }
  for (size_t i = 0; i < p.draws.size(); ++i) LLM_RETURN_IF_ERROR(CheckDraw(p, i));
  for (size_t i = 0; i < p.edits.size(); ++i) {
    const LogitEdit& edit = p.edits[i];
    if (edit.id < 0 || edit.id >= p.cols) {
      return Invalid("edit ", i, " is of id ", edit.id, " of ", p.cols);
    }
    if (!(edit.repetition > 0) || std::isnan(edit.bias) || !std::isfinite(edit.penalty)) {
      return Invalid("edit ", i, ": bias ", edit.bias, ", repetition ", edit.repetition,
                     ", penalty ", edit.penalty);
    }
  }
  return absl::OkStatus();
}

}  // namespace llm
