// What must hold of the queues, the sequences and their tables after every call.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "src/cache/window.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {
namespace {

absl::Status Broken(const Sequence& sequence, absl::string_view what) {
  return absl::InternalError(absl::StrCat("sequence ", sequence.request.id, ": ", what));
}

absl::Status CheckWaiting(const Sequence& sequence) {
  const bool holds = std::any_of(sequence.block_tables.begin(), sequence.block_tables.end(),
                                 [](const BlockTable& table) { return !table.empty(); });
  if (sequence.status != SequenceStatus::kWaiting || sequence.num_computed_tokens != 0 || holds) {
    return Broken(sequence, "waits, but is not as a waiting sequence must be");
  }
  return absl::OkStatus();
}

// Also adds the table's blocks to refs. `pinned` blocks are read by copies before the step writes.
absl::Status CheckTable(const Sequence& sequence, int group, const BlockManager& blocks,
                        const std::vector<BlockCopy>& pinned, std::vector<int>* refs) {
  const BlockTable& table = sequence.block_tables[static_cast<size_t>(group)];
  const BlockPool& pool = blocks.pool(group);
  const int32_t computed = sequence.num_computed_tokens;
  if (static_cast<int64_t>(table.size()) * blocks.block_size() < computed) {
    return Broken(sequence, "has computed tokens without a block");
  }
  const int32_t first = FirstNeededBlock(computed, blocks.window(group), blocks.block_size());
  std::set<BlockId> seen;
  for (int32_t i = 0; i < static_cast<int32_t>(table.size()); ++i) {
    const BlockId block = table[static_cast<size_t>(i)];
    if ((block == kNullBlock) != (i < first))
      return Broken(sequence, "misses a block or keeps one");
    if (block == kNullBlock) continue;
    if (!seen.insert(block).second) return Broken(sequence, "holds a block twice");
    ++(*refs)[static_cast<size_t>(block)];
    // A block that later tokens go into must be the sequence's own.
    const bool writable = (i + 1) * blocks.block_size() > computed;
    const auto pins = std::count_if(pinned.begin(), pinned.end(), [&](const BlockCopy& copy) {
      return copy.group == group && copy.source == block;
    });
    if (writable && (pool.num_refs(block) != 1 + pins || pool.findable(block))) {
      return Broken(sequence, "would write into a shared or cached block");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SchedulerImpl::CheckInvariants() const {
  const auto out_of_order = [this](const Sequence* a, const Sequence* b) {
    return !MoreImportant(*a, *b);
  };
  for (const Queue* queue : {&running_, &waiting_}) {
    if (std::adjacent_find(queue->begin(), queue->end(), out_of_order) != queue->end()) {
      return absl::InternalError("a queue is out of order");
    }
  }
  for (const Sequence* sequence : waiting_) {
    if (absl::Status status = CheckWaiting(*sequence); !status.ok()) return status;
  }
  std::vector<std::vector<int>> refs;
  for (int blocks : options_.num_blocks) refs.emplace_back(static_cast<size_t>(blocks), 0);
  for (const Sequence* sequence : running_) {
    // Between Commit and the append of the sampled token, all tokens are computed.
    if (sequence->status != SequenceStatus::kRunning ||
        sequence->num_computed_tokens > sequence->num_tokens()) {
      return Broken(*sequence, "runs, but is not as a running sequence must be");
    }
    for (int g = 0; g < blocks_.num_groups(); ++g) {
      const absl::Status status =
          CheckTable(*sequence, g, blocks_, pinned_copies_, &refs[static_cast<size_t>(g)]);
      if (!status.ok()) return status;
    }
  }
  for (const Adoption* adoption : adoptions_) {
    for (size_t g = 0; g < refs.size(); ++g) {
      for (const BlockId block : adoption->tables[g]) {
        if (block != kNullBlock) ++refs[g][static_cast<size_t>(block)];
      }
    }
  }
  for (const BlockCopy& copy : pinned_copies_) {
    ++refs[static_cast<size_t>(copy.group)][static_cast<size_t>(copy.source)];
  }
  for (const Pin& pin : pins_) blocks_.CountPin(pin.node, &refs);
  return blocks_.CheckInvariants(refs);
}

}  // namespace llm
