// Operations of the thread that runs, on the grid that runs.
#include "tests/cuda_on_cpu/block.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/fiber_stacks.h"
#include "tests/cuda_on_cpu/grid.h"
#include "tests/cuda_on_cpu/read_only_data.h"

namespace llm::cuda_on_cpu {
namespace {

Moment Now(const Thread& thread) {
  return {thread.number, g_grid->block_epoch,
          g_grid->warps[static_cast<size_t>(thread.warp())].epoch};
}

void CheckShared(const void* address, size_t bytes, bool is_write) {
  const auto begin =
      static_cast<size_t>(static_cast<const std::byte*>(address) - g_grid->shared_begin);
  if (begin + bytes > g_grid->shape.shared_bytes) {
    Fault(absl::StrCat(is_write ? "writes " : "reads ", bytes, " bytes at shared byte ", begin,
                       " of ", g_grid->shape.shared_bytes));
  }
  const Moment now = Now(*g_grid->current);
  const std::string fault =
      is_write ? g_grid->shadow.Write(now, begin, bytes) : g_grid->shadow.Read(now, begin, bytes);
  if (!fault.empty()) Fault(fault);
}

// Memory that is there, perhaps of another device.
void CheckReach(const void* address, size_t bytes, bool is_write) {
  const DeviceMemory& memory = DeviceMemory::Get();
  if (memory.Reaches(g_grid->device, address)) return;
  Fault(absl::StrCat("device ", g_grid->device, is_write ? " writes " : " reads ", bytes,
                     " bytes of device ", memory.DeviceOf(address), " without peer access"));
}

bool IsShared(const void* address) {
  const auto* p = static_cast<const std::byte*>(address);
  return p >= g_grid->shared_begin && p < g_grid->shared.data() + g_grid->shared.size();
}

void FinishCopy(const PendingCopy& copy) {
  std::memset(copy.destination, 0, static_cast<size_t>(copy.size));
  std::memcpy(copy.destination, copy.source, static_cast<size_t>(copy.bytes));
  const std::string fault = g_grid->shadow.EndCopy(
      Now(*g_grid->current), static_cast<size_t>(copy.destination - g_grid->shared_begin),
      static_cast<size_t>(copy.size));
  if (!fault.empty()) Fault(fault);
}

}  // namespace

bool InKernel() { return g_grid != nullptr && g_grid->current != nullptr; }
int ThreadNumber() { return g_grid->current->number; }
int LaneIndex() { return g_grid->current->lane(); }
Extent BlockIndex() { return g_grid->block_index; }
Extent BlockSize() { return g_grid->shape.block; }
Extent GridSize() { return g_grid->shape.grid; }
std::byte* SharedMemory() { return g_grid->shared_begin; }

Extent ThreadIndex() { return g_grid->current->index; }

void Fault(const std::string& message) {
  if (g_grid->fault.empty()) {
    g_grid->fault = absl::StrCat(g_grid->shape.name, ", block ", Place(g_grid->block_index),
                                 ", thread ", g_grid->current->number, ": ", message);
  }
  while (true) SwitchToScheduler();
}

int SyncThreadsOr(int predicate) {
  g_grid->current->wait = Wait::kBlock;
  g_grid->current->predicate = predicate != 0;
  SwitchToScheduler();
  return g_grid->current->predicate;
}

void SyncThreads() { SyncThreadsOr(0); }

namespace {

Gathering& FindGathering(Warp* warp, const char* name, uint32_t mask, Resolve resolve) {
  for (Gathering& gathering : warp->gatherings) {
    if ((gathering.mask & mask) == 0) continue;
    if (gathering.mask != mask || gathering.resolve != resolve) {
      Fault(absl::StrCat(name, ": lanes ", absl::Hex(gathering.arrived), " of the warp are in ",
                         gathering.operation, gathering.mask != mask ? " with another mask" : ""));
    }
    return gathering;
  }
  warp->gatherings.push_back({mask, 0, resolve, name, {}});
  return warp->gatherings.back();
}

}  // namespace

void WarpCollective(const char* name, uint32_t mask, Resolve resolve, void* operand) {
  Thread& self = *g_grid->current;
  Warp& warp = g_grid->warps[static_cast<size_t>(self.warp())];
  const uint32_t bit = 1u << self.lane();
  if ((mask & bit) == 0) Fault(absl::StrCat(name, ": the mask leaves the lane out"));
  if ((mask & ~warp.lanes) != 0) Fault(absl::StrCat(name, ": the mask has absent lanes"));
  Gathering& gathering = FindGathering(&warp, name, mask, resolve);
  gathering.arrived |= bit;
  gathering.operands[self.lane()] = operand;
  if (gathering.arrived != mask) {
    self.operation = name;
    self.wait = Wait::kWarp;
    SwitchToScheduler();
    return;
  }
  resolve(gathering.operands, mask);
  const auto first = static_cast<size_t>(self.warp() * kWarpSize);
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) != 0) g_grid->threads[first + lane].wait = Wait::kNothing;
  }
  gathering = warp.gatherings.back();
  warp.gatherings.pop_back();
}

void SyncWarp(uint32_t mask) {
  // Only the whole warp counts as a barrier for the race detector: our kernels use no other.
  const Warp& warp = g_grid->warps[static_cast<size_t>(g_grid->current->warp())];
  if (mask != 0xffffffffu && mask != warp.lanes) Fault("__syncwarp of a part of the warp");
  WarpCollective(
      "__syncwarp", warp.lanes,
      [](void* const* /*operands*/, uint32_t /*mask*/) {
        ++g_grid->warps[static_cast<size_t>(g_grid->current->warp())].epoch;
      },
      nullptr);
}

void CheckAccess(const void* address, size_t bytes, bool is_write) {
  if (!InKernel() || FiberStacks::Get().Holds(address)) return;
  const bool shared = IsShared(address);
  // Vector accesses only: the compiler splits others as it likes.
  if (bytes <= 16 && (bytes & (bytes - 1)) == 0 &&
      reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    Fault(absl::StrCat(is_write ? "writes " : "reads ", bytes,
                       " bytes at an address that is not a multiple of it"));
  }
  if (shared) return CheckShared(address, bytes, is_write);
  if (DeviceMemory::Get().Contains(address, bytes)) return CheckReach(address, bytes, is_write);
  if (!is_write && IsReadOnlyData(address, bytes)) return;
  Fault(absl::StrCat(is_write ? "writes " : "reads ", bytes,
                     DeviceMemory::Get().IsDevice(address) ? " bytes outside of every allocation"
                                                           : " bytes of the host's memory"));
}

void CopyAsync(void* shared, const void* source, int bytes, int size) {
  if (bytes < 0 || bytes > size) Fault(absl::StrCat("cp.async of ", bytes, " bytes"));
  if (!IsShared(shared)) Fault("cp.async to what is not shared memory");
  const auto alignment = static_cast<uintptr_t>(size);
  if (reinterpret_cast<uintptr_t>(shared) % alignment != 0 ||
      (bytes > 0 && reinterpret_cast<uintptr_t>(source) % alignment != 0)) {
    Fault(absl::StrCat("cp.async with an address that is not a multiple of ", size));
  }
  auto* destination = static_cast<std::byte*>(shared);
  const auto begin = static_cast<size_t>(destination - g_grid->shared_begin);
  const auto whole = static_cast<size_t>(size);
  if (begin + whole > g_grid->shape.shared_bytes) {
    Fault("cp.async beyond the end of shared memory");
  }
  if (bytes > 0) {
    if (!DeviceMemory::Get().Contains(source, static_cast<size_t>(bytes))) {
      Fault("cp.async from outside of every allocation");
    }
    CheckReach(source, static_cast<size_t>(bytes), false);
  }
  const std::string fault = g_grid->shadow.BeginCopy(Now(*g_grid->current), begin, whole);
  if (!fault.empty()) Fault(fault);
  std::memset(destination, 0xff, whole);
  g_grid->current->open_copies.push_back(
      {destination, static_cast<const std::byte*>(source), bytes, size});
}

void CommitCopies() {
  Thread& self = *g_grid->current;
  self.groups.push_back(std::move(self.open_copies));
  self.open_copies.clear();
}

void WaitCopies(int groups_in_flight) {
  Thread& self = *g_grid->current;
  while (self.groups.size() > static_cast<size_t>(groups_in_flight)) {
    for (const PendingCopy& copy : self.groups.front()) FinishCopy(copy);
    self.groups.pop_front();
  }
}

}  // namespace llm::cuda_on_cpu
