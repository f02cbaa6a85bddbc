// What must hold of pools and prefix cache between any two calls.
#include "absl/strings/str_cat.h"
#include "src/cache/block_manager.h"

namespace llm {

absl::Status BlockManager::CheckInvariants(
    const std::vector<std::vector<int>>& expected_refs) const {
  for (int g = 0; g < num_groups(); ++g) {
    if (absl::Status status = pool(g).CheckInvariants(); !status.ok()) return status;
    for (BlockId block = 0; block < pool(g).num_blocks(); ++block) {
      const int expected = expected_refs[static_cast<size_t>(g)][static_cast<size_t>(block)];
      if (pool(g).num_refs(block) != expected) {
        return absl::InternalError(absl::StrCat("group ", g, ": block ", block, " has ",
                                                pool(g).num_refs(block), " references, ", expected,
                                                " tables and copies name it"));
      }
      const bool named = prefix_.has_value() && prefix_->node_of_block(g, block) != kNoPrefixNode;
      if (named != pool(g).findable(block)) {
        return absl::InternalError(absl::StrCat("group ", g, ": block ", block, " is findable: ",
                                                pool(g).findable(block), ", has a node: ", named));
      }
    }
  }
  return prefix_.has_value() ? prefix_->CheckInvariants() : absl::OkStatus();
}

}  // namespace llm
