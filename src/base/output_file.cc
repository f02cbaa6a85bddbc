// Both signals go to the thread that writes: blocked there, they wait until they are taken back.
#include "src/base/output_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace llm {
namespace {

constexpr int kSignals[] = {SIGPIPE, SIGXFSZ};

}  // namespace

std::FILE* OpenOutputFile(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (fd < 0) return nullptr;
  const int flags = fcntl(fd, F_GETFL);
  std::FILE* file = nullptr;
  if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0) file = fdopen(fd, "w");
  if (file == nullptr) {
    const int error = errno;
    close(fd);
    errno = error;
  }
  return file;
}

ScopedQuietWrites::ScopedQuietWrites() {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : kSignals) sigaddset(&blocked, signal);
  sigpending(&pending_);
  pthread_sigmask(SIG_BLOCK, &blocked, &saved_);
}

ScopedQuietWrites::~ScopedQuietWrites() {
  const int error = errno;
  for (const int signal : kSignals) {
    if (sigismember(&pending_, signal) == 1) continue;  // not of our writes
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    const timespec now = {};
    while (sigtimedwait(&one, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &saved_, nullptr);
  errno = error;
}

}  // namespace llm
