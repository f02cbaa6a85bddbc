// What device code can do. A fiber for each CUDA thread of a block, switched at barriers and
// warp-wide operations only; grid.h runs them.
//
// Threads of a block run in an order that the seed shuffles anew each time all of them have waited.
// A broken rule (a race, an access outside of memory, a barrier that not all threads reach) ends
// the grid with a fault: the kernel's later threads do not run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace llm::cuda_on_cpu {

inline constexpr int kWarpSize = 32;
inline constexpr int kMaxBlockThreads = 1024;
inline constexpr size_t kMaxSharedBytes = 227 * 1024;  // of sm_90, the largest

struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct GridShape {
  std::string name = "kernel";
  Extent grid;
  Extent block;
  size_t shared_bytes = 0;
};

// What follows is for device code: it may be called within a grid only, but for InKernel.
bool InKernel();
Extent ThreadIndex();
Extent BlockIndex();
Extent BlockSize();
Extent GridSize();
int ThreadNumber();  // within the block
int LaneIndex();
std::byte* SharedMemory();
void SyncThreads();
int SyncThreadsOr(int predicate);

// Ends the grid with `message`; does not return.
[[noreturn]] void Fault(const std::string& message);

// Waits until every lane of `mask` has come, then calls resolve(operands, mask) once with what each
// lane brought (null for lanes outside of mask). Lanes that bring different functions are a fault.
using Resolve = void (*)(void* const* operands, uint32_t mask);
void WarpCollective(const char* name, uint32_t mask, Resolve resolve, void* operand);
void SyncWarp(uint32_t mask);

// One access of the running thread, checked: alignment, bounds, and in shared memory races and
// bytes that nothing has written. Memory on the stack of a fiber is the thread's own.
void CheckAccess(const void* address, size_t bytes, bool is_write);

// cp.async: `size` bytes (4 or 16) of which `bytes` come from `source`, the others are zero.
// Nothing arrives before the group that Commit closed is waited for; until then the destination
// must not be read.
void CopyAsync(void* shared, const void* source, int bytes, int size);
void CommitCopies();
void WaitCopies(int groups_in_flight);

}  // namespace llm::cuda_on_cpu
