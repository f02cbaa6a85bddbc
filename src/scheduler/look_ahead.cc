// Room for the tokens of the step after this one, which may so begin before this one has ended.
#include <algorithm>

#include "src/base/dcheck.h"
#include "src/base/math.h"
#include "src/base/reserve.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {
namespace {

// It has all of its prompt behind it, and a token comes of it.
bool Decodes(const ScheduledChunk& chunk) {
  const Sequence& sequence = *chunk.sequence;
  return chunk.num_logits == 1 && sequence.score_begin < 0 &&
         chunk.begin + chunk.length == sequence.num_tokens();
}

}  // namespace

void SchedulerImpl::CoverTokens(Sequence* sequence, int32_t num_tokens) {
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    BlockTable& table = sequence->block_tables[static_cast<size_t>(g)];
    ReserveTotal(&table, static_cast<size_t>(CeilDiv(num_tokens, options_.block_size)));
    while (static_cast<int64_t>(table.size()) * options_.block_size < num_tokens) {
      table.push_back(blocks_.Allocate(g));
      LLM_DCHECK(table.back() != kNullBlock);
    }
  }
}

// Whoever waits and could start is not made to wait for one more step. Those that find no place or
// no room now start a step after somebody's end.
bool SchedulerImpl::MayLookAhead(const Step& step) {
  const std::vector<ScheduledChunk>& chunks = step.plan.chunks;
  const auto ends = [](const ScheduledChunk& chunk) { return EndsWithNextToken(*chunk.sequence); };
  return !step.preempted && chunks.size() == running_.size() &&
         std::all_of(chunks.begin(), chunks.end(), Decodes) &&
         !std::all_of(chunks.begin(), chunks.end(), ends) &&
         (waiting_.empty() || !NextMayStart(step, /*behind=*/true));
}

// For all or for none: a step that leaves somebody out would be worth little.
void SchedulerImpl::LookAhead(Step* step) {
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    int64_t missing = 0;
    for (const ScheduledChunk& chunk : step->plan.chunks) {
      const BlockTable& table = chunk.sequence->block_tables[static_cast<size_t>(g)];
      const int64_t covered = static_cast<int64_t>(table.size()) * options_.block_size;
      if (!EndsWithNextToken(*chunk.sequence) && covered <= chunk.sequence->num_tokens()) ++missing;
    }
    if (missing > blocks_.pool(g).num_available()) return;
  }
  for (const ScheduledChunk& chunk : step->plan.chunks) {
    if (EndsWithNextToken(*chunk.sequence)) continue;
    CoverTokens(chunk.sequence, chunk.sequence->num_tokens() + 1);
  }
  step->plan.looks_ahead = true;
}

}  // namespace llm
