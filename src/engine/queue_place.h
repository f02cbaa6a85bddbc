// The bound on what an engine holds: requests and their prompt tokens, reserved at submit and given
// back at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"

namespace llm {

struct QueueBounds {
  int64_t max_requests = 1024;
  int64_t max_tokens = int64_t{4} << 20;  // prompt tokens
};

class QueueUsage {
 public:
  explicit QueueUsage(const QueueBounds& bounds) : bounds_(bounds) {}
  // Both or nothing. RESOURCE_EXHAUSTED with the numbers.
  absl::Status Take(int64_t requests, int64_t tokens);
  void GiveBack(int64_t requests, int64_t tokens);
  const QueueBounds& bounds() const { return bounds_; }

 private:
  const QueueBounds bounds_;
  std::mutex mutex_;
  int64_t requests_ = 0;
  int64_t tokens_ = 0;
};

// One request's place, which may be that of several; gives itself back.
class QueuePlace {
 public:
  QueuePlace() = default;
  QueuePlace(QueuePlace&& other) noexcept
      : usage_(std::move(other.usage_)),
        requests_(other.requests_),
        tokens_(std::exchange(other.tokens_, 0)) {}
  QueuePlace& operator=(QueuePlace&& other) noexcept {
    Release();
    usage_ = std::move(other.usage_);
    requests_ = other.requests_;
    tokens_ = std::exchange(other.tokens_, 0);
    return *this;
  }
  ~QueuePlace() { Release(); }

  static absl::Status Reserve(std::shared_ptr<QueueUsage> usage, int64_t requests, int64_t tokens,
                              QueuePlace* place);
  // Changes the tokens of the place; on failure it stays as it is.
  absl::Status Resize(int64_t tokens);
  void Release();

 private:
  std::shared_ptr<QueueUsage> usage_;
  int64_t requests_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace llm
