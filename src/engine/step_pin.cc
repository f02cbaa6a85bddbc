// Commit of chunks that complete a prefix to be pinned.
#include <new>

#include "src/engine/step_loop.h"

namespace llm {

void StepLoop::CommitPins(const std::vector<ScheduledChunk>& chunks) {
  for (const ScheduledChunk& chunk : chunks) {
    ActiveRequest* request = RequestOf(chunk.sequence);
    if (request->pin == nullptr || !request->open() ||
        request->num_computed_tokens < request->num_tokens()) {
      continue;
    }
    try {
      const absl::Status status = PinPrefix(*request);
      End(request, status.ok() ? FinishReason::kLength : FinishReason::kRejected, status);
    } catch (const std::bad_alloc&) {
      EndOutOfMemory(request);  // nothing is pinned: what allocates comes first
    }
  }
}

// The scheduler first: what it refuses no caller may ever see as a pin.
absl::Status StepLoop::PinPrefix(const ActiveRequest& request) {
  const absl::Status status = scheduler_->PinPrefix(request, request.request.id);
  return status.ok() ? GrantPin(request) : status;
}

// What the scheduler has pinned becomes the caller's.
absl::Status StepLoop::GrantPin(const ActiveRequest& request) {
  const uint64_t id = request.request.id;
  if (pins_.Grant(id, *request.pin)) return absl::OkStatus();
  scheduler_->UnpinPrefix(id);
  return absl::ResourceExhaustedError("prefix: too many pins, or its caller has gone");
}

}  // namespace llm
