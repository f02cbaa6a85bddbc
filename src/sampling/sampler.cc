// Draws by inversion: the kept weights are summed block by block at fixed positions, in id order,
// and the random number is looked up first among the blocks and then within one.
#include "src/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/sampling/logits_processors.h"
#include "src/sampling/philox.h"

namespace llm {
namespace {

using BlockWeights = std::array<float, kVocabBlock>;

Cut FindCut(const LogitsRow& row, const SamplingParams& params, const Weigher& weigher) {
  Cut cut;
  if (params.top_k > 0) cut = TopKCut(row.logits, params.top_k);
  if (params.top_p < 1.0f) {
    cut = TopPCut(row.logits, cut, weigher, std::max(0.0, static_cast<double>(params.top_p)));
  }
  if (params.min_p > 0.0f) cut = Stricter(cut, MinPCut(weigher, params.min_p));
  return cut;
}

// Weights of ids [begin, begin + kVocabBlock), 0 where the cut or the row's end leaves them out.
void WeighKept(absl::Span<const float> logits, size_t begin, const Weigher& weigher, const Cut& cut,
               CutFilter* filter, BlockWeights* weights) {
  const size_t length = std::min(kVocabBlock, logits.size() - begin);
  if (cut.key == 0 && length == kVocabBlock) {
    WeighBlock(&logits[begin], weigher, weights->data());
    return;
  }
  weights->fill(0.0f);
  for (size_t i = 0; i < length; ++i) {
    if (filter->Keeps(logits[begin + i])) (*weights)[i] = weigher(logits[begin + i]);
  }
}

// Eight interleaved sums, added in order: the same order always, without waiting for each addition.
double Sum(const BlockWeights& weights) {
  std::array<double, 8> lanes{};
  for (size_t i = 0; i < kVocabBlock; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) lanes[lane] += static_cast<double>(weights[i + lane]);
  }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

// The sum of one block, and where the cut's walk stood at its start.
struct BlockSum {
  double sum;
  CutFilter filter;
};

// The last block of a positive sum at or before which `target` is passed; `target` becomes relative
// to it.
size_t FindBlock(const std::vector<BlockSum>& sums, double* target) {
  size_t found = 0;
  double before = 0;
  double sum = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].sum == 0) continue;
    found = i;
    before = sum;
    sum += sums[i].sum;
    if (sum > *target) break;
  }
  *target -= before;
  return found;
}

int32_t Draw(absl::Span<const float> logits, const Weigher& weigher, const Cut& cut,
             double uniform) {
  std::vector<BlockSum> sums;
  sums.reserve(logits.size() / kVocabBlock + 1);
  CutFilter filter(cut);
  BlockWeights weights;
  double total = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kVocabBlock) {
    BlockSum block{0, filter};
    WeighKept(logits, begin, weigher, cut, &filter, &weights);
    block.sum = Sum(weights);
    total += block.sum;
    sums.push_back(block);
  }
  double target = uniform * total;
  const size_t begin = FindBlock(sums, &target) * kVocabBlock;
  filter = sums[begin / kVocabBlock].filter;
  WeighKept(logits, begin, weigher, cut, &filter, &weights);
  // Rounding may leave the target just above the last sum: the last id with a weight is drawn then.
  size_t drawn = 0;
  double sum = 0;
  for (size_t i = 0; i < kVocabBlock; ++i) {
    if (weights[i] == 0) continue;
    drawn = i;
    sum += static_cast<double>(weights[i]);
    if (sum > target) break;
  }
  return static_cast<int32_t>(begin + drawn);
}

std::vector<TokenLogprob> TopLogprobs(const LogitsRow& row, int32_t num_logprobs) {
  std::vector<TokenLogprob> top;
  if (num_logprobs <= 0) return top;
  const size_t count = std::min(static_cast<size_t>(num_logprobs), row.logits.size());
  top.reserve(count);
  CutFilter filter(TopKCut(row.logits, static_cast<int64_t>(count)));
  for (size_t id = 0; id < row.logits.size(); ++id) {
    if (!filter.Keeps(row.logits[id])) continue;
    top.push_back({static_cast<int32_t>(id), row.logits[id]});
  }
  std::sort(top.begin(), top.end(), [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  });
  for (TokenLogprob& entry : top) entry.logprob -= row.log_sum_exp;
  return top;
}

}  // namespace

void SetLogprobs(const LogitsRow& row, int32_t num_logprobs, SampledToken* token) {
  token->logprob = row.logits[static_cast<size_t>(token->id)] - row.log_sum_exp;
  token->top = TopLogprobs(row, num_logprobs);
}

absl::StatusOr<SampledToken> Sample(const LogitsRow& row, const SamplingParams& params,
                                    int64_t position) {
  if (row.argmax < 0 || !std::isfinite(row.max))
    return absl::InternalError("logits are not finite");
  SampledToken token;
  token.id = row.argmax;
  if (row.logits.empty()) {
    token.logprob = row.max - row.log_sum_exp;  // its logit is the row's largest
    return token;
  }
  if (static_cast<size_t>(row.argmax) >= row.logits.size()) {
    return absl::InternalError(absl::StrCat("argmax ", row.argmax, " lies outside a vocabulary of ",
                                            row.logits.size(), " ids"));
  }
  if (params.temperature > 0.0f && params.top_k != 1) {
    const Weigher weigher{row.max, params.temperature};
    const Cut cut = FindCut(row, params, weigher);
    token.id = Draw(row.logits, weigher, cut, UniformAt(params.seed, position));
  }
  SetLogprobs(row, params.num_logprobs, &token);
  return token;
}

}  // namespace llm
