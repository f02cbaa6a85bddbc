// By sorting the whole row.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "kernels/sample_math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

using Ids = std::vector<int32_t>;

float LogitOf(const std::vector<float>& logits, int32_t id) {
  return logits[static_cast<size_t>(id)];
}

// The largest logit first, the lower id at a tie.
Ids Ranked(const std::vector<float>& logits) {
  Ids ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return OrderedKey(LogitOf(logits, a)) > OrderedKey(LogitOf(logits, b));
  });
  return ids;
}

// How many of the ranked ids the filters keep.
size_t CountKept(const std::vector<float>& logits, const Ids& ranked, const Weigher& weigher,
                 const RowDraw& draw) {
  size_t kept = ranked.size();
  if (draw.top_k > 0) kept = std::min(kept, static_cast<size_t>(draw.top_k));
  if (draw.top_p < 1.0f) {
    uint64_t total = 0;
    for (size_t i = 0; i < kept; ++i) total += WholeWeight(weigher(LogitOf(logits, ranked[i])));
    const uint64_t target = TopPTarget(std::max(0.0, static_cast<double>(draw.top_p)), total);
    uint64_t sum = 0;
    size_t count = 0;
    while (count < kept && sum < target) {
      sum += WholeWeight(weigher(LogitOf(logits, ranked[count++])));
    }
    kept = count;
  }
  const uint32_t lowest = MinPKey(weigher, draw.log_min_p);
  while (kept > 1 && OrderedKey(LogitOf(logits, ranked[kept - 1])) < lowest) --kept;
  return kept;
}

int32_t DrawByWeight(const std::vector<float>& logits, float max, const RowDraw& draw) {
  const Weigher weigher{max, draw.temperature};
  Ids kept = Ranked(logits);
  kept.resize(CountKept(logits, kept, weigher, draw));
  std::sort(kept.begin(), kept.end());
  uint64_t total = 0;
  for (const int32_t id : kept) total += WholeWeight(weigher(LogitOf(logits, id)));
  const uint64_t place = PlaceOf(RandomBits(draw.seed, draw.position), total);
  uint64_t sum = 0;
  for (const int32_t id : kept) {
    sum += WholeWeight(weigher(LogitOf(logits, id)));
    if (sum > place) return id;
  }
  return kept.back();
}

int32_t DrawId(const std::vector<float>& logits, const RowDraw& draw) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (*best == -INFINITY) return kNothingToDraw;
  if (!std::isfinite(*best)) return kLogitsNotFinite;
  if (draw.temperature == 0.0f || draw.top_k == 1) {
    return static_cast<int32_t>(best - logits.begin());
  }
  return DrawByWeight(logits, *best, draw);
}

void SampleRow(const SampleParams& p, int64_t index) {
  const RowDraw& draw = p.draws[static_cast<size_t>(index)];
  const float* row = p.logits + draw.row * p.cols;
  const float log_sum_exp = p.log_sum_exp[draw.row];
  if (p.argmax[draw.row] < 0 || !std::isfinite(p.max[draw.row])) {
    p.drawn[index] = {kLogitsNotFinite, 0};
    return;
  }
  const std::vector<float> original(row, row + p.cols);
  if (draw.num_top > 0) {
    const Ids ranked = Ranked(original);
    for (int32_t i = 0; i < draw.num_top; ++i) {
      const int32_t id = ranked[static_cast<size_t>(i)];
      p.top[index * p.max_top + i] = {id, LogitOf(original, id) - log_sum_exp};
    }
  }
  std::vector<float> edited = original;
  for (int32_t i = draw.edits_begin; i < draw.edits_end; ++i) {
    const LogitEdit& edit = p.edits[static_cast<size_t>(i)];
    edited[static_cast<size_t>(edit.id)] = edit(LogitOf(original, edit.id));
  }
  const int32_t id = DrawId(edited, draw);
  p.drawn[index] = {id, id < 0 ? 0 : LogitOf(original, id) - log_sum_exp};
}

}  // namespace

absl::Status ReferenceSample(const SampleParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckSample(params));
  RunTasks(stream, static_cast<int64_t>(params.draws.size()),
           [&](int64_t index, int /*worker*/) { SampleRow(params, index); });
  return absl::OkStatus();
}

}  // namespace llm
