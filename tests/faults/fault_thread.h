// Replaces pthread_create in a test program, so that a chosen thread is not created.
#pragma once

#include <cstdint>

namespace llm {

// While one lives, creation number `first` (from 0) and all `length - 1` after it fail with EAGAIN.
class ScopedThreadFault {
 public:
  ScopedThreadFault(int64_t first, int64_t length);
  ~ScopedThreadFault();
  ScopedThreadFault(const ScopedThreadFault&) = delete;
  ScopedThreadFault& operator=(const ScopedThreadFault&) = delete;
};

// Of the latest fault's life.
int64_t NumThreadsWanted();
int64_t NumThreadsRefused();

}  // namespace llm
