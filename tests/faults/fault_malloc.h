// Replaces malloc and its family in a test program, for every thread and library of the process, so
// that a chosen allocation fails.
#pragma once

#include <cstdint>

namespace llm {

// While one lives, allocation number `first` (from 0, over all threads) and the `length - 1` after
// it fail.
class ScopedAllocationFault {
 public:
  ScopedAllocationFault(int64_t first, int64_t length);
  ~ScopedAllocationFault();
  ScopedAllocationFault(const ScopedAllocationFault&) = delete;
  ScopedAllocationFault& operator=(const ScopedAllocationFault&) = delete;
};

// Of the latest fault's life.
int64_t NumAllocationsSeen();
int64_t NumAllocationsFailed();
// Allocations that were not freed, since the program's start.
int64_t NumLiveAllocations();
// As malloc rounds them up.
int64_t NumLiveBytes();
// The most at one time since the last call.
int64_t TakeMostLiveBytes();

}  // namespace llm
