// Pins: the node's path says which blocks are held, and cannot change while they are.
#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/cache/block_manager.h"
#include "src/cache/window.h"

namespace llm {

template <typename Visit>
void BlockManager::ForEachNeeded(PrefixNodeId node, Visit visit) const {
  const int32_t num_tokens = NumTokens(node);
  for (int32_t i = prefix_->depth(node) - 1; i >= 0; --i, node = prefix_->parent(node)) {
    for (int g = 0; g < num_groups(); ++g) {
      if (i < FirstNeededBlock(num_tokens, window(g), block_size())) continue;
      visit(g, prefix_->block(node, g));
    }
  }
}

absl::Status BlockManager::Pin(PrefixNodeId node, const std::vector<BlockTable>& tables,
                               absl::Span<const int64_t> max_pinned) {
  PublishMissing(node, tables);
  std::vector<int64_t> pinned;
  for (const BlockPool& pool : pools_) pinned.push_back(pool.num_pinned());
  ForEachNeeded(node, [&](int group, BlockId block) {
    LLM_DCHECK(block != kNullBlock);
    if (pool(group).num_pins(block) == 0) ++pinned[static_cast<size_t>(group)];
  });
  for (size_t g = 0; g < pools_.size(); ++g) {
    if (pinned[g] <= max_pinned[g]) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("prefix: ", pinned[g], " blocks of kv group ", g, " would be pinned, ",
                     pools_[g].num_pinned(), " of them by others; the bound is ", max_pinned[g]));
  }
  ForEachNeeded(node, [this](int group, BlockId block) { mutable_pool(group)->Pin(block); });
  prefix_->Pin(node);
  return absl::OkStatus();
}

void BlockManager::Unpin(PrefixNodeId node) {
  ForEachNeeded(node, [this](int group, BlockId block) { mutable_pool(group)->Unpin(block); });
  prefix_->Unpin(node);
}

void BlockManager::CountPin(PrefixNodeId node, std::vector<std::vector<int>>* refs) const {
  ForEachNeeded(node, [refs](int group, BlockId block) {
    ++(*refs)[static_cast<size_t>(group)][static_cast<size_t>(block)];
  });
}

}  // namespace llm
