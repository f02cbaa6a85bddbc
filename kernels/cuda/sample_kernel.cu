// Draws a token from a row of logits: a block a row, whatever the request asks of it.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_select.cuh"

namespace llm {
namespace {

constexpr float kBinsPerNat = 64;    // of weights: they end 27.7 below the maximum, bins 32
constexpr float kBinsPerLogit = 32;  // of counts: 64 below the maximum
constexpr float kLargest = 3.4e38f;

// The num_top most likely ids, from a list of the few that lie in the first bins.
__device__ __forceinline__ void WriteTop(const SelectRow& row, float max, float log_sum_exp,
                                         int num_top, TokenLogprob* top, SelectScratch* scratch) {
  const Spread spread = {max, kBinsPerLogit};
  ClearBins(scratch);
  VisitRow(row, [&](float logit, int) { atomicAdd(&scratch->bins[spread.Bin(logit)], Mass{1}); });
  Mass target = 0, before = 0;
  const auto target_of = [num_top](Mass) { return static_cast<Mass>(num_top); };
  const int bin = FindBin(target_of, scratch, &target, &before);
  const bool listed = MakeList(
      row, [&](float logit, int) { return spread.Bin(logit) <= bin; }, scratch);
  Mass last = ~Mass{0};
  for (int place = 0; place < num_top; ++place) {
    Mass best = 0;
    VisitListed(row, listed, *scratch, [&](float logit, int id) {
      const Mass ranked = Ranked(logit, id);
      if (ranked < last && ranked > best) best = ranked;
    });
    last = BlockBest(best, scratch);
    if (threadIdx.x == 0) top[place] = {IdOf(last), row.logits[IdOf(last)] - log_sum_exp};
  }
}

// The maximum of a row that edits have changed, and the first id that has it.
__device__ __forceinline__ Mass BestOf(const SelectRow& row, SelectScratch* scratch) {
  Mass best = 0;
  VisitRow(row, [&](float logit, int id) { best = max(best, Ranked(logit, id)); });
  return BlockBest(best, scratch);
}

__device__ __forceinline__ int DrawByWeight(const SelectRow& row, float max, const RowDraw& draw,
                                            SelectScratch* scratch) {
  WeightMass mass = {{max, draw.temperature}, {}};
  if (draw.top_k > 0 && draw.top_k < row.cols) {
    const auto target_of = [&draw](Mass) { return static_cast<Mass>(draw.top_k); };
    mass.kept = FindCut(row, {max, kBinsPerLogit}, CountMass(), target_of, scratch);
  }
  if (draw.top_p < 1.0f) {
    const Spread spread = {max, fminf(kBinsPerNat / draw.temperature, kLargest)};
    const double p = draw.top_p > 0.0f ? static_cast<double>(draw.top_p) : 0.0;
    const auto target_of = [p](Mass total) { return static_cast<Mass>(TopPTarget(p, total)); };
    mass.kept = Stricter(mass.kept, FindCut(row, spread, mass, target_of, scratch));
  }
  mass.kept = Stricter(mass.kept, {MinPKey(mass.weigher, draw.log_min_p), kNoTieLeftOut});
  const uint64_t bits = RandomBits(draw.seed, draw.position);
  const auto place_of = [bits](Mass total) { return static_cast<Mass>(PlaceOf(bits, total)); };
  return FindId(row, mass, place_of, scratch);
}

// The id that is drawn from the changed row, or why none is.
__device__ __forceinline__ int DrawId(const SelectRow& row, float max, int argmax,
                                      const RowDraw& draw, SelectScratch* scratch) {
  if (draw.edits_end > draw.edits_begin) {
    const Mass best = BestOf(row, scratch);
    max = LogitOf(best);
    argmax = IdOf(best);
    if (max == __uint_as_float(0xff800000u)) return kNothingToDraw;
    if (!IsFinite(max)) return kLogitsNotFinite;
  }
  if (draw.temperature == 0.0f || draw.top_k == 1) return argmax;
  return DrawByWeight(row, max, draw, scratch);
}

__global__ void __launch_bounds__(kSelectThreads) sample_kernel(const SampleArgs args) {
  SelectScratch* scratch = DynamicShared<SelectScratch>();
  const int index = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const RowDraw& draw = args.draws[index];  // read when needed: registers are few
  float* logits = args.logits + draw.row * args.cols;
  const SelectRow row = {logits, static_cast<int>(args.cols)};
  const float max = args.max[draw.row], log_sum_exp = args.log_sum_exp[draw.row];
  const int argmax = args.argmax[draw.row];
  if (argmax < 0 || !IsFinite(max)) {
    if (thread == 0) args.drawn[index] = {kLogitsNotFinite, 0};
    return;
  }
  if (draw.num_top > 0) {
    WriteTop(row, max, log_sum_exp, draw.num_top, args.top + index * args.max_top, scratch);
  }
  for (int i = draw.edits_begin + thread; i < draw.edits_end; i += kSelectThreads) {
    const LogitEdit edit = args.edits[i];
    args.originals[i] = logits[edit.id];
    logits[edit.id] = edit(logits[edit.id]);
  }
  __syncthreads();
  const int id = DrawId(row, max, argmax, draw, scratch);
  __syncthreads();  // the changed row has been read
  for (int i = draw.edits_begin + thread; i < draw.edits_end; i += kSelectThreads) {
    logits[args.edits[i].id] = args.originals[i];
  }
  __syncthreads();
  if (thread == 0) args.drawn[index] = {id, id < 0 ? 0.0f : logits[id] - log_sum_exp};
}

}  // namespace

cudaError_t LaunchSample(const SampleArgs& args, LaunchStream stream) {
  return Launch(
      sample_kernel,
      {dim3(static_cast<unsigned>(args.num_draws)), dim3(kSelectThreads), sizeof(SelectScratch)},
      stream, args);
}

}  // namespace llm
