// The first promise that a host's hook broke; an engine that finds one turns unhealthy.
#pragma once

#include <atomic>

#include "absl/status/status.h"

namespace llm {

// Thread-safe; recording allocates nothing.
class HookFault {
 public:
  // `what`: which hook and what it did; a literal.
  void Record(const char* what) {
    const char* none = nullptr;
    what_.compare_exchange_strong(none, what);
  }
  bool occurred() const { return what_.load() != nullptr; }
  // INTERNAL saying what happened; OK when nothing did.
  absl::Status status() const {
    const char* what = what_.load();
    return what == nullptr ? absl::OkStatus() : absl::InternalError(what);
  }

 private:
  std::atomic<const char*> what_{nullptr};
};

}  // namespace llm
