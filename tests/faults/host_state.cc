// Read from the kernel wherever it tells, so that no cached copy is compared with itself.
#include "tests/faults/host_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

extern char** environ;

namespace llm {
namespace {

template <typename Visit>
void ForEachEntry(const char* folder, Visit visit) {
  DIR* const dir = opendir(folder);
  if (dir == nullptr) return;
  while (const dirent* const entry = readdir(dir)) {
    if (entry->d_name[0] != '.') visit(entry->d_name, dirfd(dir));
  }
  closedir(dir);
}

std::map<int, std::string> Descriptors() {
  std::map<int, std::string> all;
  ForEachEntry("/proc/self/fd", [&](const char* name, int folder) {
    if (std::atoi(name) == folder) return;
    char target[512] = {};
    const ssize_t size = readlinkat(folder, name, target, sizeof(target) - 1);
    all[std::atoi(name)] = std::string(target, size < 0 ? 0 : static_cast<size_t>(size));
  });
  return all;
}

template <typename T>
std::string BytesOf(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

int NumThreads() {
  int count = 0;
  ForEachEntry("/proc/self/task", [&](const char*, int) { ++count; });
  return count;
}

bool WaitForThreads(int wanted) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (NumThreads() > wanted) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    sched_yield();
  }
  return true;
}

HostState TakeHostState() {
  HostState state;
  for (int signal = 1; signal < SIGRTMAX; ++signal) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    state.actions.push_back(action);
  }
  sigset_t signals = {};
  pthread_sigmask(SIG_SETMASK, nullptr, &signals);
  for (int signal = 1; signal < SIGRTMAX; ++signal) {
    state.signal_mask += sigismember(&signals, signal) == 1 ? '1' : '0';
  }
  state.locale = std::setlocale(LC_ALL, nullptr);
  char directory[4096] = {};
  if (getcwd(directory, sizeof(directory)) != nullptr) state.directory = directory;
  for (char** entry = environ; *entry != nullptr; ++entry) state.environment.push_back(*entry);
  cpu_set_t cpus = {};
  sched_getaffinity(0, sizeof(cpus), &cpus);
  state.affinity = BytesOf(cpus);
  state.mask = umask(0);
  umask(state.mask);
#if defined(__x86_64__)
  // The flags that arithmetic leaves are not a setting.
  state.mxcsr = _mm_getcsr() & ~uint32_t{0x3f};
  __asm__ __volatile__("fnstcw %0" : "=m"(state.x87));
#endif
  state.rounding = std::fegetround();
  state.priority = getpriority(PRIO_PROCESS, 0);
  state.descriptors = Descriptors();
  state.num_threads = NumThreads();
  return state;
}

std::string Differences(const HostState& before, const HostState& after) {
  std::string names;
  const auto compare = [&](bool same, const char* name) {
    if (!same) names += std::string(names.empty() ? "" : ", ") + name;
  };
  for (size_t i = 0; i < before.actions.size(); ++i) {
    compare(before.actions[i].sa_handler == after.actions[i].sa_handler &&
                before.actions[i].sa_flags == after.actions[i].sa_flags,
            "signal handler");
  }
  compare(before.signal_mask == after.signal_mask, "signal mask");
  compare(before.locale == after.locale, "locale");
  compare(before.directory == after.directory, "working directory");
  compare(before.environment == after.environment, "environment");
  compare(before.affinity == after.affinity, "affinity");
  compare(before.mask == after.mask, "umask");
  compare(before.mxcsr == after.mxcsr, "MXCSR");
  compare(before.x87 == after.x87, "x87 control word");
  compare(before.rounding == after.rounding, "rounding");
  compare(before.priority == after.priority, "priority");
  compare(before.descriptors == after.descriptors, "descriptors");
  compare(before.num_threads == after.num_threads, "threads");
  return names;
}

}  // namespace llm
