// Plays the model: keeps, for each slot, which token of which history was written there, and checks
// that a sequence reads back exactly its own tokens through its block tables. Every aliasing bug
// shows here.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "src/scheduler/scheduler.h"

namespace llm {

class SlotOracle {
 public:
  explicit SlotOracle(const SchedulerOptions& options);

  // Copies blocks and writes the plan's tokens; then every chunk reads what its queries see. Empty
  // when all is right.
  std::string Execute(const StepPlan& plan, const std::vector<const Sequence*>& running);
  // A step that fails on the way: fills what the plan owns with garbage.
  void Fail(const StepPlan& plan, std::mt19937* random);

 private:
  // Identifies a token together with all that stands before it, salt and adapter included; 0:
  // garbage.
  using History = uint64_t;

  static std::vector<History> HistoriesOf(const Sequence& sequence);
  History* Slot(const Sequence& sequence, size_t group, int32_t position);
  std::string CheckOwnership(const StepPlan& plan, const std::vector<const Sequence*>& running);
  std::string CheckReads(const ScheduledChunk& chunk);
  void CopyBlocks(const StepPlan& plan);

  const SchedulerOptions options_;
  std::vector<std::vector<History>> slots_;  // [groups][blocks * block_size]
};

}  // namespace llm
