// Which stream runs next. Streams are concurrent: the work of each runs on a fiber, and pauses
// between the steps of a kernel.
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/grid.h"

namespace llm::cuda_on_cpu {

bool Gpu::IsDone(uint64_t id, uint64_t ticket) const {
  const auto found = queues_.find(id);
  return found == queues_.end() || found->second.done >= ticket;
}

bool Gpu::CanGoOn(const Queue& queue) const {
  return &queue != running_ && !queue.work.empty() &&
         (queue.awaited_ticket == 0 || IsDone(queue.awaited_id, queue.awaited_ticket));
}

// The one that `queue` waits for, if it waits; null where nothing can go on.
Queue* Gpu::Needed(Queue* queue) {
  for (size_t i = 0; i < queues_.size() && queue != nullptr; ++i) {
    if (CanGoOn(*queue)) return queue;
    queue = queue->awaited_ticket == 0 ? nullptr : FindById(queue->awaited_id);
  }
  return nullptr;
}

// The drawn one goes on for a drawn number of steps, so that streams also come far before others.
Queue* Gpu::Draw() {
  Queue* const last = FindById(drawn_id_);
  if (num_steps_left_ > 0 && last != nullptr && CanGoOn(*last)) {
    --num_steps_left_;
    return last;
  }
  uint32_t count = 0;
  for (const auto& [id, queue] : queues_) count += CanGoOn(queue) ? 1 : 0;
  if (count == 0) return nullptr;
  uint32_t left = static_cast<uint32_t>(random_()) % count;
  for (auto& [id, queue] : queues_) {
    if (!CanGoOn(queue) || left-- != 0) continue;
    drawn_id_ = id;
    num_steps_left_ = (1u << random_() % 8) - 1;
    return &queue;
  }
  return nullptr;
}

// After a fault nothing begins, and what has paused ends at once.
void Gpu::GoOn(Queue* queue) {
  bool ended = true;
  if (queue->fiber.paused() || fault_.empty()) {
    running_ = queue;
    ended = queue->fiber.Resume(queue->work.front());
    running_ = nullptr;
  }
  if (!ended) return;
  queue->work.pop_front();
  ++queue->done;
}

void Gpu::RunUntil(Queue* queue, uint64_t ticket) {
  if (Queue* const self = running_; self != nullptr) {
    self->awaited_id = queue->id;
    self->awaited_ticket = ticket;
    while (!IsDone(self->awaited_id, ticket) && fault_.empty()) self->fiber.Pause();
    self->awaited_ticket = 0;
    return;
  }
  const DeviceMemory::Window window;
  // As late as can be, for what others forgot to wait for; or side by side.
  const bool alone = random_() % 2 == 0;
  while (queue->done < ticket && !queue->work.empty()) {
    Queue* const next = alone ? Needed(queue) : Draw();
    if (next == nullptr) return;
    GoOn(next);
  }
}

void Gpu::RunAll() {
  const DeviceMemory::Window window;
  while (Queue* const next = Draw()) GoOn(next);
}

void Gpu::RunDevice(int device) {
  const DeviceMemory::Window window;
  const auto is_idle = [&] {
    for (const auto& [id, queue] : queues_) {
      if (queue.device == device && !queue.work.empty()) return false;
    }
    return true;
  };
  while (!is_idle()) {
    Queue* const next = Draw();
    if (next == nullptr) return;
    GoOn(next);
  }
}

void Gpu::Run(const GridShape& shape, const std::function<void()>& kernel) {
  Queue* const self = running_;
  ++num_launches_;
  GridRun run(shape, seed_++, self->device, kernel);
  while (fault_.empty() && run.Step()) self->fiber.Pause();
  if (fault_.empty()) Break(run.fault());
}

}  // namespace llm::cuda_on_cpu
