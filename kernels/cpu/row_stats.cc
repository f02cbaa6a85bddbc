// Parts of 4,096 logits run in parallel when there are fewer rows than workers; they are merged in
// the same order anyway.
#include <array>
#include <cmath>
#include <limits>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {
namespace {

constexpr int64_t kPart = 4096;         // logits
constexpr int64_t kParallelParts = 64;  // parts held at once: a vocabulary of 262,144

// Parts of one row merged so far.
class RowMerge {
 public:
  void Add(const RowPart& part, int64_t part_begin) {
    has_nan_ = has_nan_ || part.has_nan;
    has_finite_ = has_finite_ || part.has_finite;
    if (part.max > max_) {
      sum_ *= std::exp(max_ - double{part.max});
      max_ = double{part.max};
      argmax_ = part_begin + part.argmax;
    }
    if (part.sum_exp > 0) sum_ += double{part.sum_exp} * std::exp(double{part.max} - max_);
  }

  void Write(const RowStatsParams& p, int64_t row) const {
    if (has_nan_ || !has_finite_) {
      p.argmax[row] = -1;
      p.max[row] = p.log_sum_exp[row] = std::numeric_limits<float>::quiet_NaN();
      return;
    }
    p.argmax[row] = static_cast<int32_t>(argmax_);
    p.max[row] = static_cast<float>(max_);
    p.log_sum_exp[row] = static_cast<float>(std::isinf(max_) ? max_ : max_ + std::log(sum_));
  }

 private:
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
  int64_t argmax_ = 0;
  bool has_nan_ = false;
  bool has_finite_ = false;
};

RowPart ComputePart(const IsaKernels& isa, const RowStatsParams& p, int64_t row, int64_t part) {
  const int64_t begin = part * kPart;
  const int64_t count = std::min(kPart, p.cols - begin);
  return isa.row_stats_part(p.logits + row * p.cols + begin, static_cast<int>(count));
}

void RowInOneTask(const IsaKernels& isa, const RowStatsParams& p, int64_t row) {
  RowMerge merge;
  for (int64_t part = 0; part < CeilDiv(p.cols, kPart); ++part) {
    merge.Add(ComputePart(isa, p, row, part), part * kPart);
  }
  merge.Write(p, row);
}

void RowInManyTasks(const IsaKernels& isa, const RowStatsParams& p, const Stream& stream,
                    int64_t row) {
  RowMerge merge;
  std::array<RowPart, kParallelParts> parts;
  const int64_t num_parts = CeilDiv(p.cols, kPart);
  for (int64_t begin = 0; begin < num_parts; begin += kParallelParts) {
    const int64_t count = std::min(kParallelParts, num_parts - begin);
    RunTasks(stream, count, [&](int64_t i, int /*worker*/) {
      parts[static_cast<size_t>(i)] = ComputePart(isa, p, row, begin + i);
    });
    for (int64_t i = 0; i < count; ++i) {
      merge.Add(parts[static_cast<size_t>(i)], (begin + i) * kPart);
    }
  }
  merge.Write(p, row);
}

}  // namespace

absl::Status RowStats(const IsaKernels& isa, const RowStatsParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckRowStats(params));
  if (params.rows >= NumWorkers(stream)) {
    RunTasks(stream, params.rows,
             [&](int64_t row, int /*worker*/) { RowInOneTask(isa, params, row); });
    return absl::OkStatus();
  }
  for (int64_t row = 0; row < params.rows; ++row) RowInManyTasks(isa, params, stream, row);
  return absl::OkStatus();
}

}  // namespace llm::cpu
