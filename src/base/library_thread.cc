// A thread inherits its creator's signal mask: blocked there for the moment of creation, no signal
// can reach it in between.
#include "src/base/library_thread.h"

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

class ScopedSignalsBlocked {
 public:
  ScopedSignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    // Blocked, a fault of the thread's own would end the process without the host's handler.
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&blocked, signal);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &saved_);
  }
  ~ScopedSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  ScopedSignalsBlocked(const ScopedSignalsBlocked&) = delete;
  ScopedSignalsBlocked& operator=(const ScopedSignalsBlocked&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace

absl::Status StartThread(absl::string_view what, std::function<void()> body, std::thread* thread) {
  const ScopedSignalsBlocked blocked;
  try {
    *thread = std::thread(std::move(body));
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": cannot create a thread: ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace llm
