// The stack is kept for the next piece of work.
#include "tests/cuda_on_cpu/work_fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>

namespace llm::cuda_on_cpu {

namespace context = boost::context::detail;

WorkFiber::~WorkFiber() {
  if (stack_ != nullptr) munmap(stack_, kGuardBytes + kStackBytes);
}

bool WorkFiber::Resume(const std::function<void()>& work) {
  if (stack_ == nullptr) {
    void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) std::abort();
    stack_ = static_cast<std::byte*>(memory);
  }
  if (fiber_ == nullptr) {
    work_ = &work;
    fiber_ = context::make_fcontext(stack_ + kGuardBytes + kStackBytes, kStackBytes,
                                    [](context::transfer_t from) {
                                      auto* self = static_cast<WorkFiber*>(from.data);
                                      self->caller_ = from.fctx;
                                      (*self->work_)();
                                      self->work_ = nullptr;
                                      self->Pause();
                                    });
  }
  fiber_ = context::jump_fcontext(fiber_, this).fctx;
  if (work_ == nullptr) fiber_ = nullptr;
  return fiber_ == nullptr;
}

void WorkFiber::Pause() { caller_ = context::jump_fcontext(caller_, nullptr).fctx; }

}  // namespace llm::cuda_on_cpu
