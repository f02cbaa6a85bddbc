// Runs a piece of a stream's work on a stack of its own, so that it can stop in the middle while
// other streams go on.
#pragma once

#include <cstddef>
#include <functional>

namespace llm::cuda_on_cpu {

class WorkFiber {
 public:
  WorkFiber() = default;
  ~WorkFiber();
  WorkFiber(const WorkFiber&) = delete;
  WorkFiber& operator=(const WorkFiber&) = delete;

  // Begins `work`, or goes on with it where it paused; true when it has ended. `work` must be the
  // same, in the same place, until then.
  bool Resume(const std::function<void()>& work);
  bool paused() const { return fiber_ != nullptr; }
  // Within the work: back to Resume's caller, until it resumes.
  void Pause();

 private:
  static constexpr size_t kStackBytes = 256 * 1024;
  static constexpr size_t kGuardBytes = 4096;

  std::byte* stack_ = nullptr;  // a guard page first
  void* fiber_ = nullptr;       // null: nothing is running
  void* caller_ = nullptr;
  const std::function<void()>* work_ = nullptr;
};

}  // namespace llm::cuda_on_cpu
