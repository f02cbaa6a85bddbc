// What of a process a library must leave as it found it.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llm {

// Of the process, and of the thread that takes it.
struct HostState {
  std::vector<struct sigaction> actions;  // by signal number
  std::string signal_mask;
  std::string locale;
  std::string directory;
  std::vector<std::string> environment;
  std::string affinity;
  mode_t mask = 0;
  uint32_t mxcsr = 0;
  uint16_t x87 = 0;
  int rounding = 0;
  int priority = 0;
  std::map<int, std::string> descriptors;  // to what they name
  int num_threads = 0;
};

HostState TakeHostState();
// The names of what differs, in words; "" when nothing does.
std::string Differences(const HostState& before, const HostState& after);

int NumThreads();
// A joined thread stays listed for a moment: waits until `wanted` are left, ten seconds at most.
bool WaitForThreads(int wanted);

}  // namespace llm
