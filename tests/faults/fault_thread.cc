// The program's own pthread_create comes before glibc's for every library of the process.
#include "tests/faults/fault_thread.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<bool> armed{false};
std::atomic<int64_t> wanted{0};
std::atomic<int64_t> refused{0};
std::atomic<int64_t> fail_begin{0};
std::atomic<int64_t> fail_end{0};

bool ShouldFail() {
  if (!armed.load()) return false;
  const int64_t number = wanted.fetch_add(1);
  if (number < fail_begin.load() || number >= fail_end.load()) return false;
  refused.fetch_add(1);
  return true;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* data) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return ShouldFail() ? EAGAIN : create(thread, attributes, body, data);
}

namespace llm {

ScopedThreadFault::ScopedThreadFault(int64_t first, int64_t length) {
  wanted.store(0);
  refused.store(0);
  fail_begin.store(first);
  fail_end.store(first + length);
  armed.store(true);
}

ScopedThreadFault::~ScopedThreadFault() { armed.store(false); }

int64_t NumThreadsWanted() { return wanted.load(); }
int64_t NumThreadsRefused() { return refused.load(); }

}  // namespace llm
