// Writing to a path of the host's choice, which may be a pipe without reader or a full disk.
#pragma once

#include <signal.h>

#include <cstdio>
#include <string>

namespace llm {

// As fopen(path, "we"), but does not wait for a FIFO's reader: ENXIO when there is none.
std::FILE* OpenOutputFile(const std::string& path);

// While one lives, writes of this thread that the kernel would answer with a signal (a pipe that
// nobody reads, a file beyond the process's limit) fail with an error alone.
class ScopedQuietWrites {
 public:
  ScopedQuietWrites();
  ~ScopedQuietWrites();
  ScopedQuietWrites(const ScopedQuietWrites&) = delete;
  ScopedQuietWrites& operator=(const ScopedQuietWrites&) = delete;

 private:
  sigset_t saved_;
  sigset_t pending_;  // before
};

}  // namespace llm
