// See the header; hashes are 64-bit mixes, whose collisions are too rare for the sizes tested to
// matter.
#include "tests/unit/scheduler/slot_oracle.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

uint64_t Mix(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15u;
  state ^= state >> 29;
  state *= 0xBF58476D1CE4E5B9u;
  return (state ^ (state >> 32)) | 1;
}

}  // namespace

SlotOracle::SlotOracle(const SchedulerOptions& options) : options_(options) {
  for (int blocks : options.num_blocks) {
    slots_.emplace_back(static_cast<size_t>(blocks * options.block_size), 0);
  }
}

std::vector<SlotOracle::History> SlotOracle::HistoriesOf(const Sequence& sequence) {
  History history = Mix(77, sequence.request.adapter_id);
  for (char c : sequence.request.cache_salt) history = Mix(history, static_cast<unsigned char>(c));
  std::vector<History> histories;
  for (int32_t token : sequence.tokens) {
    history = Mix(history, static_cast<uint64_t>(token) + 1000);
    histories.push_back(history);
  }
  return histories;
}

SlotOracle::History* SlotOracle::Slot(const Sequence& sequence, size_t group, int32_t position) {
  const BlockTable& table = sequence.block_tables[group];
  const size_t index = static_cast<size_t>(position / options_.block_size);
  if (index >= table.size() || table[index] == kNullBlock) return nullptr;
  const int32_t offset = position % options_.block_size;
  return &slots_[group][static_cast<size_t>(table[index] * options_.block_size + offset)];
}

void SlotOracle::CopyBlocks(const StepPlan& plan) {
  for (const BlockCopy& copy : plan.block_copies) {
    std::vector<History>& slots = slots_[static_cast<size_t>(copy.group)];
    std::copy_n(slots.begin() + copy.source * options_.block_size, copy.tokens,
                slots.begin() + copy.destination * options_.block_size);
  }
}

// What is written belongs to one running sequence alone, and is written once.
std::string SlotOracle::CheckOwnership(const StepPlan& plan,
                                       const std::vector<const Sequence*>& running) {
  for (size_t g = 0; g < slots_.size(); ++g) {
    std::vector<int> names(static_cast<size_t>(options_.num_blocks[g]), 0);
    for (const Sequence* sequence : running) {
      for (BlockId block : sequence->block_tables[g]) {
        if (block != kNullBlock) ++names[static_cast<size_t>(block)];
      }
    }
    std::set<const History*> written;
    for (const ScheduledChunk& chunk : plan.chunks) {
      for (int32_t i = chunk.begin; i < chunk.begin + chunk.length; ++i) {
        const History* slot = Slot(*chunk.sequence, g, i);
        if (slot == nullptr) return absl::StrCat("no slot for position ", i);
        if (!written.insert(slot).second)
          return absl::StrCat("a slot is written twice, position ", i);
        const ptrdiff_t block = (slot - slots_[g].data()) / options_.block_size;
        if (names[static_cast<size_t>(block)] != 1)
          return absl::StrCat("writes shared block ", block);
      }
    }
  }
  return "";
}

std::string SlotOracle::CheckReads(const ScheduledChunk& chunk) {
  const std::vector<History> expected = HistoriesOf(*chunk.sequence);
  for (size_t g = 0; g < slots_.size(); ++g) {
    const int window = options_.groups[g].window;
    const int32_t first = window == 0 ? 0 : std::max(0, chunk.begin - window + 1);
    for (int32_t i = first; i < chunk.begin + chunk.length; ++i) {
      const History* slot = Slot(*chunk.sequence, g, i);
      if (slot == nullptr || *slot != expected[static_cast<size_t>(i)]) {
        return absl::StrCat("sequence ", chunk.sequence->request.id, " group ", g, ": position ", i,
                            slot == nullptr ? " has no block" : " holds another token's state");
      }
    }
  }
  return "";
}

std::string SlotOracle::Execute(const StepPlan& plan, const std::vector<const Sequence*>& running) {
  if (std::string wrong = CheckOwnership(plan, running); !wrong.empty()) return wrong;
  CopyBlocks(plan);
  for (const ScheduledChunk& chunk : plan.chunks) {
    const std::vector<History> histories = HistoriesOf(*chunk.sequence);
    for (size_t g = 0; g < slots_.size(); ++g) {
      for (int32_t i = chunk.begin; i < chunk.begin + chunk.length; ++i) {
        *Slot(*chunk.sequence, g, i) = histories[static_cast<size_t>(i)];
      }
    }
  }
  for (const ScheduledChunk& chunk : plan.chunks) {
    if (std::string wrong = CheckReads(chunk); !wrong.empty()) return wrong;
  }
  return "";
}

void SlotOracle::Fail(const StepPlan& plan, std::mt19937* random) {
  if ((*random)() % 2 == 0) CopyBlocks(plan);
  for (const ScheduledChunk& chunk : plan.chunks) {
    for (size_t g = 0; g < slots_.size(); ++g) {
      for (int32_t i = chunk.begin; i < chunk.begin + chunk.length; ++i) {
        if (History* slot = Slot(*chunk.sequence, g, i); slot != nullptr) *slot = 0;
      }
    }
  }
}

}  // namespace llm
