// Reads and writes run on the engine thread: a block is some hundred KiB, and the page cache
// stands behind the file.
#include "src/engine/spill_tier.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/base/xxh64.h"
#include "src/cache/window.h"

namespace llm {
namespace {

// The index must not outgrow what the library may take uncounted.
constexpr int64_t kMaxIndexBytes = 4 << 20;
// Before anything was read: what a disk gives that is no disk of ours.
constexpr double kFirstReadBytesPerNs = 0.5;
// The writes of a step, a few blocks in the page cache, take less; a disk that is behind takes
// more.
constexpr int64_t kMostWriteNs = 4'000'000;
// So much of the reads before the last one counts along with it.
constexpr double kReadMemory = 0.9;

std::vector<KvGroupSpec> SpecsOf(const KvShape& shape) {
  std::vector<KvGroupSpec> specs;
  for (const KvGroupShape& group : shape.groups) {
    specs.push_back({.window = group.window,
                     .layers = std::vector<int>(static_cast<size_t>(group.num_layers))});
  }
  return specs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpillTier>> SpillTier::Create(const SpillOptions& options,
                                                             const KvShape& shape, Runner* runner,
                                                             std::shared_ptr<const Clock> clock,
                                                             Logger logger) {
  uint64_t slot_bytes = 0;
  for (const KvGroupShape& group : shape.groups) {
    slot_bytes = std::max(slot_bytes, group.block_bytes);
  }
  if (slot_bytes == 0) {
    return absl::UnimplementedError("spill: this device does not show its keys and values");
  }
  if (options.max_bytes < slot_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("spill_bytes: ", options.max_bytes,
                                                   " have no room for a block of ", slot_bytes));
  }
  const int64_t most = kMaxIndexBytes / SpillIndex::BytesOfSlot(shape.block_size);
  const int64_t slots = std::min<int64_t>(
      most, static_cast<int64_t>(std::min<uint64_t>(options.max_bytes / slot_bytes, INT32_MAX)));
  LLM_ASSIGN_OR_RETURN(ScratchFile file, ScratchFile::Create(options.folder));
  logger.Info("spill: ", slots, " blocks of ", slot_bytes, " bytes in ", options.folder);
  if (slots == most && options.max_bytes / slot_bytes > static_cast<uint64_t>(most)) {
    logger.Warning("spill: spill_bytes ", options.max_bytes, " is cut to ",
                   static_cast<uint64_t>(slots) * slot_bytes, ": there are ", most,
                   " blocks at the most");
  }
  return std::unique_ptr<SpillTier>(new SpillTier(shape, static_cast<int32_t>(slots), slot_bytes,
                                                  std::move(file), runner, std::move(clock),
                                                  std::move(logger)));
}

SpillTier::SpillTier(const KvShape& shape, int32_t num_slots, uint64_t slot_bytes, ScratchFile file,
                     Runner* runner, std::shared_ptr<const Clock> clock, Logger logger)
    : shape_(shape),
      windows_(SpecsOf(shape)),
      slot_bytes_(slot_bytes),
      file_(std::move(file)),
      runner_(runner),
      clock_(std::move(clock)),
      logger_(std::move(logger)),
      index_(num_slots, shape.block_size),
      scratch_(static_cast<size_t>(slot_bytes)) {}

// A block that the file holds already has the same contents: its prefix fixes every bit of them.
void SpillTier::OnEvict(const PrefixBlockId& id, BlockId block) {
  if (!writing_.ok()) return;
  if (const SpillIndex::Slot held = index_.Find(id); held != SpillIndex::kNoSlot) {
    index_.Touch(held);
    return;
  }
  if (written_ns_ >= kMostWriteNs) return;
  const size_t bytes = BlockBytes(id.group);
  if (!runner_->ReadBlock(id.group, block, scratch_.data()).ok()) return;  // its next step says why
  const int64_t start_ns = clock_->NowNs();  // a device may have been in the midst of a step
  const SpillIndex::Slot slot = index_.Add(id, Checksum(scratch_.data(), bytes));
  try {
    writing_ = file_.Write(Offset(slot), scratch_.data(), bytes);
  } catch (const std::bad_alloc&) {
    writing_ = absl::ResourceExhaustedError("");  // there is no memory for a message
  }
  if (!writing_.ok()) {  // what is there can still be read
    index_.Remove(slot);
    return;
  }
  written_ns_ += clock_->NowNs() - start_ns;
  ++counters_.spilled_blocks_total;
  counters_.written_bytes_total += bytes;
}

void SpillTier::TellFailures() {
  if (!writing_.ok() && !std::exchange(told_writing_, true)) {
    logger_.Warning("spill: no more blocks are written: ", writing_.message());
  }
  // Each time there are twice as many: a bad disk must not fill the log.
  if (counters_.failed_blocks_total < std::max<uint64_t>(1, 2 * told_blocks_)) return;
  told_blocks_ = counters_.failed_blocks_total;
  logger_.Warning("spill: ", told_blocks_, " damaged or unreadable blocks, computed again, so far");
}

PrefixBlockId SpillTier::IdOf(const PrefixPlace& place, const Sequence& sequence, int32_t index,
                              int group) const {
  const auto i = static_cast<size_t>(index);
  const auto size = static_cast<size_t>(shape_.block_size);
  return {.key = place.keys[i],
          .parent_key = i == 0 ? place.root : place.keys[i - 1],
          .tokens = absl::MakeConstSpan(sequence.tokens).subspan(i * size, size),
          .group = group};
}

// The most blocks of the prefix that the cache and the tier together can serve in every group.
int32_t SpillTier::LongestHeld(const PrefixPlace& place, const Sequence& sequence) const {
  const auto num_blocks = static_cast<int32_t>(place.keys.size());
  int32_t longest = place.cached_blocks;
  // Where each group's run of held blocks that ends at the current one begins.
  std::vector<int32_t> begin(shape_.groups.size(), 0);
  for (int32_t index = place.cached_blocks; index < num_blocks; ++index) {
    const int32_t num_tokens = (index + 1) * shape_.block_size;
    bool serves = true;
    for (size_t g = 0; g < shape_.groups.size(); ++g) {
      const int window = shape_.groups[g].window;
      const PrefixBlockId id = IdOf(place, sequence, index, static_cast<int>(g));
      if (index_.Find(id) == SpillIndex::kNoSlot) {
        if (window == 0) return longest;
        begin[g] = index + 1;
      }
      serves &= begin[g] <= FirstNeededBlock(num_tokens, window, shape_.block_size);
    }
    if (serves) longest = index + 1;
  }
  return longest;
}

// The blocks that are evicted to make room for a return must not take the places of those that it
// has yet to read: its last ones above all, since they are read last.
void SpillTier::KeepForReturn(const PrefixPlace& place, const Sequence& sequence,
                              int32_t num_blocks) {
  for (int32_t index = num_blocks - 1; index >= place.cached_blocks; --index) {
    for (size_t g = 0; g < shape_.groups.size(); ++g) {
      const SpillIndex::Slot slot = index_.Find(IdOf(place, sequence, index, static_cast<int>(g)));
      if (slot != SpillIndex::kNoSlot) index_.Touch(slot);
    }
  }
}

bool SpillTier::Pays(const PrefixPlace& place, int32_t num_blocks,
                     const StepCostModel& cost) const {
  if (!cost.fitted()) return false;
  double bytes = 0;
  const int32_t num_tokens = num_blocks * shape_.block_size;
  for (const KvGroupShape& group : shape_.groups) {
    const int32_t first = std::max(place.cached_blocks,
                                   FirstNeededBlock(num_tokens, group.window, shape_.block_size));
    bytes += static_cast<double>(num_blocks - first) * static_cast<double>(group.block_bytes);
  }
  const double reading_ns =
      read_bytes_ > 0 ? bytes * read_ns_ / read_bytes_ : bytes / kFirstReadBytesPerNs;
  const int32_t begin = place.cached_blocks * shape_.block_size;
  const double computing_ns =
      cost.PredictNs(windows_.Chunk(begin, num_tokens - begin)) - cost.coefficients().fixed;
  return reading_ns < computing_ns;
}

bool SpillTier::Fill(const PrefixBlockId& id, BlockId block) {
  const SpillIndex::Slot slot = index_.Find(id);
  if (slot == SpillIndex::kNoSlot) return false;  // what was evicted to make room took its place
  const size_t bytes = BlockBytes(id.group);
  const int64_t start_ns = clock_->NowNs();
  const absl::Status read = file_.Read(Offset(slot), scratch_.data(), bytes);
  if (!read.ok() || Checksum(scratch_.data(), bytes) != index_.checksum(slot)) {
    index_.Remove(slot);
    ++counters_.failed_blocks_total;
    return false;
  }
  read_ns_ = kReadMemory * read_ns_ + static_cast<double>(clock_->NowNs() - start_ns);
  read_bytes_ = kReadMemory * read_bytes_ + static_cast<double>(bytes);
  if (!runner_->WriteBlock(id.group, block, scratch_.data()).ok()) return false;
  index_.Demote(slot);  // the cache holds it now: what its return evicts may have the slot
  ++counters_.returned_blocks_total;
  counters_.read_bytes_total += bytes;
  return true;
}

bool SpillTier::Return(SpillReturn* back, const Sequence& sequence, const StepCostModel& cost,
                       Scheduler* scheduler, int32_t most_blocks) {
  // Each attempt that fails has forgotten a block; a few are enough to come to what is sound.
  constexpr int kAttempts = 4;
  const PrefixPlace& place = back->place;
  const auto fill = [&](int32_t index, int group, BlockId block) {
    return Fill(IdOf(place, sequence, index, group), block);
  };
  while (true) {
    if (back->adoption.stage == Adoption::Stage::kFresh) {
      if (index_.size() == 0 || back->num_attempts++ == kAttempts) return true;
      const int32_t held = LongestHeld(place, sequence);
      if (held <= place.cached_blocks || !Pays(place, held, cost)) return true;
      KeepForReturn(place, sequence, held);
      const absl::Span<const int32_t> tokens = sequence.tokens;
      back->adoption.tokens = tokens.first(static_cast<size_t>(held * shape_.block_size));
    }
    const absl::StatusOr<bool> done = scheduler->Adopt(&back->adoption, fill, most_blocks);
    if (done.ok()) return *done;
    if (!absl::IsDataLoss(done.status())) return true;
    back->adoption = Adoption();
    back->adoption.request = &sequence.request;
  }
}

SpillCounters SpillTier::counters() const {
  SpillCounters counters = counters_;
  counters.blocks_current = static_cast<uint64_t>(index_.size());
  return counters;
}

}  // namespace llm
