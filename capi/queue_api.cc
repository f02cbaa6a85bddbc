// llm_queue_* and llm_poll.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/translate_event.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr size_t kFirstEventBytes = 112;  // of ABI 1.0: no caller can know less

absl::Status CreateQueue(llm_queue** queue) {
  LLM_RETURN_IF_NULL(queue);
  auto handle = std::make_unique<llm_queue>();
  handle->queue = std::make_shared<CompletionQueue>();
  *queue = handle.release();
  return absl::OkStatus();
}

absl::Status CloseQueue(llm_queue* queue) {
  if (queue == nullptr) return absl::OkStatus();
  if (queue->owned_by_engine) {
    return absl::FailedPreconditionError("queue: belongs to an engine and closes with it");
  }
  LLM_RETURN_IF_ERROR(queue->queue->Close());
  delete queue;
  return absl::OkStatus();
}

absl::Status Poll(llm_queue* queue, llm_event* events, size_t event_size, size_t capacity,
                  int64_t timeout_ns, size_t* count) {
  LLM_RETURN_IF_NULL(queue);
  LLM_RETURN_IF_NULL(events);
  LLM_RETURN_IF_NULL(count);
  if (event_size < kFirstEventBytes || event_size > (1 << 16) ||
      event_size % alignof(llm_event) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("event_size: ", event_size, " is not sizeof(llm_event)"));
  }
  if (capacity == 0) return absl::InvalidArgumentError("capacity: 0");
  char* const base = reinterpret_cast<char*>(events);
  const auto receive = [&](size_t index, const Event& event) {
    char* const slot = base + index * event_size;
    const llm_event c = TranslateEvent(event);
    const size_t known = std::min(event_size, sizeof(c));
    std::memcpy(slot, &c, known);
    std::memset(slot + known, 0, event_size - known);  // what a newer caller knows and we do not
  };
  LLM_ASSIGN_OR_RETURN(*count, queue->queue->Poll(capacity, timeout_ns, receive));
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_queue_create(llm_queue** queue) {
  return llm::Boundary([&] { return llm::CreateQueue(queue); });
}

extern "C" llm_status llm_queue_close(llm_queue* queue) {
  return llm::Boundary([&] { return llm::CloseQueue(queue); });
}

extern "C" llm_status llm_queue_fd(llm_queue* queue, int32_t* fd) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(queue);
    LLM_RETURN_IF_NULL(fd);
    LLM_ASSIGN_OR_RETURN(*fd, queue->queue->Fd());
    return absl::OkStatus();
  });
}

extern "C" llm_status llm_poll(llm_queue* queue, llm_event* events, size_t event_size,
                               size_t capacity, int64_t timeout_ns, size_t* count) {
  return llm::Boundary(
      [&] { return llm::Poll(queue, events, event_size, capacity, timeout_ns, count); });
}
