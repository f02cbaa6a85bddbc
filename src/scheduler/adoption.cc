// Prefixes whose keys and values come from elsewhere: their blocks are filled, and then cached as
// if a sequence had computed them and ended.
#include "src/scheduler/adoption.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/base/reserve.h"
#include "src/base/status_macros.h"
#include "src/cache/window.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

// Room for what is missing behind `num_taken` blocks, in blocks that nothing holds.
absl::Status SchedulerImpl::CheckAdoption(int32_t num_tokens, int32_t num_taken) const {
  const int32_t num_blocks = num_tokens / options_.block_size;
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const int32_t first = FirstNeededBlock(num_tokens, blocks_.window(g), options_.block_size);
    const int32_t missing = num_blocks - std::max(first, num_taken);
    if (missing <= blocks_.pool(g).num_available()) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "prefix: ", num_tokens, " tokens need ", missing, " blocks of kv group ", g, ", ",
        blocks_.pool(g).num_available(), " of ", blocks_.pool(g).num_blocks(), " are not in use"));
  }
  return absl::OkStatus();
}

// What allocates comes first; from the end of it on, the adoption is the scheduler's to drop.
absl::Status SchedulerImpl::BeginAdoption(Adoption* adoption) {
  if (!blocks_.prefix_cache_enabled()) {
    return absl::FailedPreconditionError("prefix: the engine has no prefix cache");
  }
  const Request& request = *adoption->request;
  const auto num_tokens = static_cast<int32_t>(adoption->tokens.size());
  LLM_DCHECK(num_tokens > 0 && num_tokens % options_.block_size == 0);
  adoption->tables.assign(options_.groups.size(), BlockTable());
  for (BlockTable& table : adoption->tables) {
    table.reserve(static_cast<size_t>(num_tokens / options_.block_size));
  }
  ReserveTotal(&adoptions_, adoptions_.size() + 1);
  PrefixMatch match =
      blocks_.Match(request.cache_salt, request.cache_variant(), adoption->tokens, num_tokens);
  match.partial_tokens = 0;
  const PrefixNodeId node = blocks_.Enter(match.node, request.cache_salt, request.cache_variant());
  if (node == kNoPrefixNode) return NoPrefixRoom();
  blocks_.TakeBlocks(match, &adoption->tables);
  adoption->prefix_node = node;
  adoption->stage = Adoption::Stage::kUnderWay;
  adoptions_.push_back(adoption);
  return absl::OkStatus();
}

absl::StatusOr<bool> SchedulerImpl::Adopt(Adoption* adoption, FillBlock fill, int32_t most_blocks) {
  LLM_DCHECK(!plan_outstanding_);
  auto drop = absl::MakeCleanup([&] { DropAdoption(adoption); });
  if (adoption->stage == Adoption::Stage::kEnded) {
    return absl::ResourceExhaustedError("prefix: running requests needed its blocks");
  }
  if (adoption->stage == Adoption::Stage::kFresh) LLM_RETURN_IF_ERROR(BeginAdoption(adoption));
  const auto num_tokens = static_cast<int32_t>(adoption->tokens.size());
  const int32_t num_blocks = num_tokens / options_.block_size;
  auto index = static_cast<int32_t>(adoption->tables[0].size());
  LLM_RETURN_IF_ERROR(CheckAdoption(num_tokens, index));
  for (; index < num_blocks && most_blocks > 0; ++index, --most_blocks) {
    for (int g = 0; g < blocks_.num_groups(); ++g) {
      const bool passed =
          index < FirstNeededBlock(num_tokens, blocks_.window(g), options_.block_size);
      const BlockId block = passed ? kNullBlock : blocks_.Allocate(g);
      adoption->tables[static_cast<size_t>(g)].push_back(block);
      if (!passed && !fill(index, g, block)) {
        return absl::DataLossError(absl::StrCat("prefix: block ", index, " could not be read"));
      }
    }
  }
  if (index == num_blocks) return FinishAdoption(adoption);
  std::move(drop).Cancel();
  return false;
}

// Its blocks are given back by the drop, and stay findable.
absl::StatusOr<bool> SchedulerImpl::FinishAdoption(Adoption* adoption) {
  const auto num_tokens = static_cast<int32_t>(adoption->tokens.size());
  adoption->prefix_node =
      blocks_.Publish(adoption->prefix_node, adoption->tokens, num_tokens, adoption->tables);
  adoption->num_filled = num_tokens;
  if (blocks_.NumTokens(adoption->prefix_node) != num_tokens) return NoPrefixRoom();
  if (adoption->pin_id != 0) {
    LLM_RETURN_IF_ERROR(PinNode(adoption->prefix_node, adoption->tables, adoption->pin_id));
  }
  return true;
}

void SchedulerImpl::DropAdoption(Adoption* adoption) {
  const bool held = adoption->stage == Adoption::Stage::kUnderWay;
  adoption->stage = Adoption::Stage::kEnded;
  if (!held) return;
  adoptions_.erase(std::find(adoptions_.begin(), adoptions_.end(), adoption));
  // Until all are filled, none is published.
  const PrefixNodeId node = adoption->num_filled > 0 ? adoption->prefix_node : kNoPrefixNode;
  blocks_.ReleaseAll(node, adoption->tokens, adoption->num_filled, adoption->request->session_id,
                     &adoption->tables);
  blocks_.Leave(adoption->prefix_node);
  adoption->prefix_node = kNoPrefixNode;
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
