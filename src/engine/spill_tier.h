// The second tier: whole blocks that the prefix cache evicts go to a file, and come back when
// reading them is expected to take less time than computing them.
//
// Never trusted: each block is held to its checksum, and one that fails is a miss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/scratch_file.h"
#include "src/cache/eviction_listener.h"
#include "src/cache/spill_index.h"
#include "src/engine/kv_image.h"
#include "src/engine/spill_counters.h"
#include "src/engine/spill_return.h"
#include "src/runner/runner.h"
#include "src/scheduler/layer_windows.h"
#include "src/scheduler/scheduler.h"

namespace llm {

// The engine thread's. Runner, scheduler and clock outlive it.
class SpillTier : public EvictionListener {
 public:
  // INVALID_ARGUMENT: max_bytes has no room for a block; the folder's errors; UNIMPLEMENTED: a
  // runner that does not show its blocks. `clock` measures reads.
  static absl::StatusOr<std::unique_ptr<SpillTier>> Create(const SpillOptions& options,
                                                           const KvShape& shape, Runner* runner,
                                                           std::shared_ptr<const Clock> clock,
                                                           Logger logger);

  // A step begins: what its evictions may take for writing is theirs anew.
  void BeginStep() { written_ns_ = 0; }
  // Dropped, not written, once the step's writes have taken too long: streams wait for them.
  void OnEvict(const PrefixBlockId& id, BlockId block) override;
  // Puts what the tier holds of the sequence's prefix, behind what is cached, into the cache, where
  // `cost` lets expect that computing it takes longer: up to most_blocks a call, until it answers
  // true. `back` is fresh but for its place and the adoption's request. May throw std::bad_alloc.
  bool Return(SpillReturn* back, const Sequence& sequence, const StepCostModel& cost,
              Scheduler* scheduler, int32_t most_blocks);
  // Logs what failed since the last call; not from inside the scheduler, which the host's log
  // callback may ask for. May throw what that callback throws.
  void TellFailures();
  void Clear() { index_.Clear(); }

  SpillCounters counters() const;

  // For tests: the file, whose slots lie slot_bytes apart.
  int fd() const { return file_.fd(); }
  uint64_t slot_bytes() const { return slot_bytes_; }

 private:
  SpillTier(const KvShape& shape, int32_t num_slots, uint64_t slot_bytes, ScratchFile file,
            Runner* runner, std::shared_ptr<const Clock> clock, Logger logger);
  PrefixBlockId IdOf(const PrefixPlace& place, const Sequence& sequence, int32_t index,
                     int group) const;
  int32_t LongestHeld(const PrefixPlace& place, const Sequence& sequence) const;
  void KeepForReturn(const PrefixPlace& place, const Sequence& sequence, int32_t num_blocks);
  bool Pays(const PrefixPlace& place, int32_t num_blocks, const StepCostModel& cost) const;
  bool Fill(const PrefixBlockId& id, BlockId block);
  uint64_t Offset(SpillIndex::Slot slot) const { return static_cast<uint64_t>(slot) * slot_bytes_; }
  size_t BlockBytes(int group) const {
    return static_cast<size_t>(shape_.groups[static_cast<size_t>(group)].block_bytes);
  }

  const KvShape shape_;
  const LayerWindows windows_;
  const uint64_t slot_bytes_;
  ScratchFile file_;
  Runner* const runner_;
  const std::shared_ptr<const Clock> clock_;
  const Logger logger_;
  SpillIndex index_;
  std::vector<std::byte> scratch_;  // [slot_bytes]
  absl::Status writing_;            // the first failure ends it
  bool told_writing_ = false;
  int64_t written_ns_ = 0;    // by the writes of this step
  uint64_t told_blocks_ = 0;  // of counters_.failed_blocks_total
  double read_ns_ = 0;        // of the last reads, decaying, like the next
  double read_bytes_ = 0;
  SpillCounters counters_;
};

}  // namespace llm
