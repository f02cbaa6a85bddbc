// Prefixes whose keys and values come from elsewhere: their blocks are filled, and then cached as
// if a sequence had computed them and ended.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/cache/window.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

// Room for what is missing, in blocks that nothing holds.
absl::Status SchedulerImpl::CheckAdoption(int32_t num_tokens, int32_t matched_blocks) const {
  const int32_t num_blocks = num_tokens / options_.block_size;
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const int32_t first = FirstNeededBlock(num_tokens, blocks_.window(g), options_.block_size);
    const int32_t missing = num_blocks - std::max(first, matched_blocks);
    if (missing <= blocks_.pool(g).num_available()) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "prefix: ", num_tokens, " tokens need ", missing, " blocks of kv group ", g, ", ",
        blocks_.pool(g).num_available(), " of ", blocks_.pool(g).num_blocks(), " are not in use"));
  }
  return absl::OkStatus();
}

absl::Status SchedulerImpl::AdoptPrefix(const Request& request, absl::Span<const int32_t> tokens,
                                        FillBlock fill, uint64_t pin_id) {
  LLM_DCHECK(!plan_outstanding_);
  if (!blocks_.prefix_cache_enabled()) {
    return absl::FailedPreconditionError("prefix: the engine has no prefix cache");
  }
  const auto num_tokens = static_cast<int32_t>(tokens.size());
  const int32_t num_blocks = num_tokens / options_.block_size;
  LLM_DCHECK(num_blocks > 0 && num_tokens % options_.block_size == 0);
  std::vector<BlockTable> tables(options_.groups.size());
  for (BlockTable& table : tables) table.reserve(static_cast<size_t>(num_blocks));
  PrefixMatch match =
      blocks_.Match(request.cache_salt, request.cache_variant(), tokens, num_tokens);
  match.partial_tokens = 0;
  PrefixNodeId node = blocks_.Enter(match.node, request.cache_salt, request.cache_variant());
  if (node == kNoPrefixNode) return NoPrefixRoom();
  blocks_.TakeBlocks(match, &tables);
  int32_t filled_tokens = 0;  // until all are, none is published
  const auto give_back = absl::MakeCleanup([&] {
    blocks_.ReleaseAll(filled_tokens > 0 ? node : kNoPrefixNode, tokens, filled_tokens,
                       request.session_id, &tables);
    blocks_.Leave(node);
  });
  if (absl::Status room = CheckAdoption(num_tokens, match.num_blocks); !room.ok()) return room;
  for (int32_t index = match.num_blocks; index < num_blocks; ++index) {
    for (int g = 0; g < blocks_.num_groups(); ++g) {
      const bool passed =
          index < FirstNeededBlock(num_tokens, blocks_.window(g), options_.block_size);
      const BlockId block = passed ? kNullBlock : blocks_.Allocate(g);
      tables[static_cast<size_t>(g)].push_back(block);
      if (!passed && !fill(index, g, block)) {
        return absl::DataLossError(absl::StrCat("prefix: block ", index, " could not be read"));
      }
    }
  }
  filled_tokens = num_tokens;
  node = blocks_.Publish(node, tokens, num_tokens, tables);
  if (blocks_.NumTokens(node) != num_tokens) return NoPrefixRoom();
  return pin_id == 0 ? absl::OkStatus() : PinNode(node, tables, pin_id);
}

// The last known token is always computed: what a match may cover ends before it.
PrefixPlace SchedulerImpl::PlaceOf(const Sequence& sequence) const {
  if (!UsesPrefixCache(sequence) || sequence.score_begin >= 0) return PrefixPlace();
  const absl::Span<const int32_t> tokens = sequence.tokens;
  return blocks_.Place(sequence.request.cache_salt, sequence.request.cache_variant(),
                       tokens.first(tokens.size() - 1));
}

std::vector<Sequence*> SchedulerImpl::NextToStart(const StepLimit& limit, size_t most) {
  Step step;
  step.limit = limit;
  if (waiting_.empty() || (!running_.empty() && !NextMayStart(step))) return {};
  const auto count = static_cast<ptrdiff_t>(std::min(most, waiting_.size()));
  return {waiting_.begin(), waiting_.begin() + count};
}

}  // namespace llm
