// The last records of something, in a ring that any thread may write and read without waiting and
// without allocating.
//
// Each slot has a state: 2 i + 1 while record i is written, 2 i + 2 once it is there. A writer that
// finds another one asleep in its slot, a whole ring behind, drops its record instead of waiting.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace llm {

// Record: plain words with a `uint64_t index`, which the ring sets.
template <typename Record>
class RecordRing {
 public:
  // `capacity` records, a power of two. Throws std::bad_alloc.
  explicit RecordRing(size_t capacity)
      : mask_(capacity - 1), words_(new std::atomic<uint64_t>[capacity * kStride]()) {}

  void Write(Record record) {
    record.index = next_.fetch_add(1, std::memory_order_relaxed);
    std::atomic<uint64_t>* state = Slot(record.index);
    const uint64_t writing = 2 * record.index + 1;
    uint64_t before = state->load(std::memory_order_relaxed);
    if (before % 2 != 0 || before > writing) return;
    if (!state->compare_exchange_strong(before, writing, std::memory_order_acquire)) return;
    uint64_t words[kWords];
    std::memcpy(words, &record, sizeof(record));
    // Releases, so that who reads one of these words reads the state from before it, or a later
    // one.
    for (size_t i = 0; i < kWords; ++i) state[1 + i].store(words[i], std::memory_order_release);
    state->store(writing + 1, std::memory_order_release);
  }

  // Calls take(record) for up to `capacity` records from *cursor on, or from the oldest one that is
  // left, and moves *cursor behind them. Returns how many.
  template <typename Take>
  size_t Read(uint64_t* cursor, size_t capacity, Take&& take) const {
    const uint64_t end = next_.load(std::memory_order_acquire);
    const uint64_t size = mask_ + 1;
    uint64_t index = std::max(*cursor, end > size ? end - size : 0);
    size_t count = 0;
    for (; count < capacity && index < end; ++index) {
      const std::atomic<uint64_t>* state = Slot(index);
      const uint64_t complete = 2 * index + 2;
      const uint64_t before = state->load(std::memory_order_acquire);
      if (before < complete) break;  // still being written
      if (before > complete) continue;
      uint64_t words[kWords];
      for (size_t i = 0; i < kWords; ++i) words[i] = state[1 + i].load(std::memory_order_acquire);
      if (state->load(std::memory_order_relaxed) != complete) continue;  // overwritten meanwhile
      Record record;
      std::memcpy(&record, words, sizeof(record));
      take(record);
      ++count;
    }
    *cursor = std::max(*cursor, index);
    return count;
  }

 private:
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % sizeof(uint64_t) == 0);
  static constexpr size_t kWords = sizeof(Record) / sizeof(uint64_t);
  static constexpr size_t kStride = 1 + kWords;

  std::atomic<uint64_t>* Slot(uint64_t index) const {
    return &words_[static_cast<size_t>(index & mask_) * kStride];
  }

  const uint64_t mask_;
  const std::unique_ptr<std::atomic<uint64_t>[]> words_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace llm
