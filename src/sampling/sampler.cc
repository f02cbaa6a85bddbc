// Draws by inversion: the kept weights are summed block by block in id order, and the random place
// is looked up first among the blocks and then within one.
#include "src/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/sampling/logits_processors.h"

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

uint64_t Sum(const BlockWeights& weights) {
  uint64_t sum = 0;
  for (const float weight : weights) sum += WholeWeight(weight);
  return sum;
}

// The sum of one block, and where the cut's walk stood at its start.
struct BlockSum {
  uint64_t sum;
  CutFilter filter;
};

int32_t Draw(absl::Span<const float> logits, const Weigher& weigher, const Cut& cut,
             uint64_t bits) {
  std::vector<BlockSum> sums;
  sums.reserve(logits.size() / kVocabBlock + 1);
  CutFilter filter(cut);
  BlockWeights weights;
  uint64_t total = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kVocabBlock) {
    BlockSum block{0, filter};
    WeighKept(logits, begin, weigher, cut, &filter, &weights);
    block.sum = Sum(weights);
    total += block.sum;
    sums.push_back(block);
  }
  // Below the total, so that both walks end before they run out, unless row.max is not the maximum.
  uint64_t place = PlaceOf(bits, total);
  size_t block = 0;
  while (block + 1 < sums.size() && sums[block].sum <= place) place -= sums[block++].sum;
  filter = sums[block].filter;
  WeighKept(logits, block * kVocabBlock, weigher, cut, &filter, &weights);
  const size_t begin = block * kVocabBlock;
  size_t i = 0;
  while (i + 1 < kVocabBlock && begin + i + 1 < logits.size() && WholeWeight(weights[i]) <= place) {
    place -= WholeWeight(weights[i++]);
  }
  return static_cast<int32_t>(begin + i);
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
    token.id = Draw(row.logits, weigher, cut, RandomBits(params.seed, position));
  }
  SetLogprobs(row, params.num_logprobs, &token);
  return token;
}

}  // namespace llm
