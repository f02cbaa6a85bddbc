// From callers to the engine thread: new requests, cancels, and the end of intake. Small critical
// sections under one mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/engine/active_request.h"
#include "src/engine/metrics.h"
#include "src/engine/waker.h"

namespace llm {

class RequestQueue {
 public:
  RequestQueue(const QueueBounds& bounds, std::shared_ptr<Waker> waker);

  const std::shared_ptr<QueueUsage>& usage() const { return usage_; }
  const std::shared_ptr<Waker>& waker() const { return waker_; }

  // OK while requests are taken; else why not: FAILED_PRECONDITION after Close, INTERNAL after
  // Fail.
  absl::Status CheckOpen() const;
  // Gives the request, which is all its choices, its id, writes it to *id, and hands the request
  // over, in this order. On failure nothing changed.
  absl::Status Push(absl::Span<std::unique_ptr<ActiveRequest>> choices, uint64_t* id);
  // NOT_FOUND: finished or never submitted.
  absl::Status Cancel(uint64_t id);
  void CountRejected(absl::StatusCode code);

  // No later Push succeeds.
  void Close();
  // Likewise, and everything answers `why`, which allocates nothing here.
  void Fail(const absl::Status& why);
  bool closed() const;

  // Engine thread. Swaps the new requests, in the order of their ids, into `requests`, which must
  // be empty.
  void Drain(std::vector<std::unique_ptr<ActiveRequest>>* requests);
  // The request is about to send its FINISHED: cancels of it answer NOT_FOUND from here on.
  void Forget(uint64_t id);

  // Handed over, but not drained yet.
  struct Backlog {
    int64_t requests = 0;
    int64_t prompt_tokens = 0;
  };
  Backlog backlog() const;

  struct Counters {
    uint64_t submitted_total = 0;
    RejectCounters rejected;
  };
  Counters counters() const;

 private:
  const std::shared_ptr<QueueUsage> usage_;
  const std::shared_ptr<Waker> waker_;

  mutable std::mutex mutex_;
  bool closed_ = false;
  absl::Status failure_;
  uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<ActiveRequest>> new_requests_;
  std::unordered_map<uint64_t, std::shared_ptr<Outbox>> open_;  // looked up, never iterated
  Counters counters_;
};

}  // namespace llm
