// Pinned prefixes. They may take what a request of the whole context leaves of the pools: whatever
// CheckFits lets in can then run beside them, alone if need be.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/cache/window.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {

int64_t SchedulerImpl::MaxPinnedBlocks(int group) const {
  const int64_t context =
      PeakBlocks(options_.max_context_tokens, 1, blocks_.window(group), options_.block_size);
  return std::max<int64_t>(0, blocks_.pool(group).num_blocks() - context);
}

absl::StatusOr<int32_t> SchedulerImpl::PinnableTokens(int64_t num_tokens) const {
  if (!blocks_.prefix_cache_enabled()) {
    return absl::FailedPreconditionError("prefix: the engine has no prefix cache");
  }
  const int32_t block_size = options_.block_size;
  if (num_tokens < block_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefix: ", num_tokens, " tokens are less than a block of ", block_size));
  }
  num_tokens = std::min<int64_t>(num_tokens, options_.max_context_tokens);
  const int32_t whole = static_cast<int32_t>(num_tokens / block_size * block_size);
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    const int64_t needed =
        whole / block_size - FirstNeededBlock(whole, blocks_.window(g), block_size);
    if (needed <= MaxPinnedBlocks(g)) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("prefix: ", whole, " tokens need ", needed, " blocks of kv group ", g,
                     "; a request of ", options_.max_context_tokens, " tokens leaves ",
                     MaxPinnedBlocks(g), " of ", blocks_.pool(g).num_blocks(),
                     " for pins (more with more kv_tokens, or a smaller context)"));
  }
  return whole;
}

absl::Status SchedulerImpl::PinPrefix(const Sequence& sequence, uint64_t pin_id) {
  LLM_DCHECK(sequence.num_computed_tokens == sequence.num_tokens());
  if (sequence.prefix_node == kNoPrefixNode ||
      blocks_.NumTokens(sequence.prefix_node) != sequence.num_tokens()) {
    return NoPrefixRoom();
  }
  return PinNode(sequence.prefix_node, sequence.block_tables, pin_id);
}

absl::Status SchedulerImpl::NoPrefixRoom() {
  return absl::ResourceExhaustedError("prefix: the prefix cache has no room for its blocks");
}

absl::Status SchedulerImpl::PinNode(PrefixNodeId node, const std::vector<BlockTable>& tables,
                                    uint64_t pin_id) {
  if (pins_.size() == kMaxPins) {
    return absl::ResourceExhaustedError(absl::StrCat("prefix: ", kMaxPins, " pins are held"));
  }
  std::vector<int64_t> max_pinned;
  max_pinned.reserve(static_cast<size_t>(blocks_.num_groups()));
  for (int g = 0; g < blocks_.num_groups(); ++g) max_pinned.push_back(MaxPinnedBlocks(g));
  absl::Status status = blocks_.Pin(node, tables, max_pinned);
  if (status.ok()) pins_.push_back({pin_id, node});
  return status;
}

void SchedulerImpl::UnpinPrefix(uint64_t pin_id) {
  const auto found = std::find_if(pins_.begin(), pins_.end(),
                                  [pin_id](const Pin& pin) { return pin.id == pin_id; });
  if (found == pins_.end()) return;
  blocks_.Unpin(found->node);
  pins_.erase(found);
}

}  // namespace llm
