// The fibers of one block at a time, and what they wait for.
#include "tests/cuda_on_cpu/block.h"

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/fiber_stacks.h"
#include "tests/cuda_on_cpu/read_only_data.h"
#include "tests/cuda_on_cpu/shared_shadow.h"

namespace llm::cuda_on_cpu {
namespace {

namespace context = boost::context::detail;

struct PendingCopy {
  std::byte* destination;
  const std::byte* source;
  int bytes;
  int size;
};

enum class Wait { kNothing, kWarp, kBlock, kExited };

struct Thread {
  int number = 0;
  Extent index;
  context::fcontext_t fiber = nullptr;
  Wait wait = Wait::kNothing;
  const char* operation = "";  // of its warp, that it waits in or came to last
  int predicate = 0;           // of SyncThreadsOr, then its result
  std::vector<PendingCopy> open_copies;
  std::deque<std::vector<PendingCopy>> groups;

  int warp() const { return number / kWarpSize; }
  int lane() const { return number % kWarpSize; }
};

// An operation of some lanes of a warp, of which not all have come.
struct Gathering {
  uint32_t mask = 0;
  uint32_t arrived = 0;
  Resolve resolve = nullptr;
  const char* operation = "";
  void* operands[kWarpSize] = {};
};

struct Warp {
  uint32_t epoch = 0;
  uint32_t lanes = 0;  // that exist
  std::vector<Gathering> gatherings;
};

struct Grid {
  const GridShape* shape = nullptr;
  const std::function<void()>* kernel = nullptr;
  Extent block_index;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  uint32_t block_epoch = 0;
  std::vector<std::byte> shared;  // its first bytes up to a multiple of 1,024 are left out
  std::byte* shared_begin = nullptr;
  SharedShadow shadow;
  Thread* current = nullptr;
  context::fcontext_t scheduler = nullptr;
  std::string fault;
};

Grid* g_grid = nullptr;  // the one that runs; grids run one at a time

Moment Now(const Thread& thread) {
  return {thread.number, g_grid->block_epoch,
          g_grid->warps[static_cast<size_t>(thread.warp())].epoch};
}

std::string Place(const Extent& e) { return absl::StrCat("(", e.x, ", ", e.y, ", ", e.z, ")"); }

void SwitchToScheduler() {
  const context::transfer_t back = context::jump_fcontext(g_grid->scheduler, nullptr);
  g_grid->scheduler = back.fctx;
}

void ThreadMain(context::transfer_t from) {
  g_grid->scheduler = from.fctx;
  (*g_grid->kernel)();
  g_grid->current->wait = Wait::kExited;
  SwitchToScheduler();
}

// True when the kernel runs on.
bool RunThread(Thread* thread) {
  g_grid->current = thread;
  const context::transfer_t back = context::jump_fcontext(thread->fiber, nullptr);
  thread->fiber = back.fctx;
  g_grid->current = nullptr;
  return g_grid->fault.empty();
}

// When all that have not left wait at the barrier, they go on. An exited thread counts as arrived.
bool OpenBarrier() {
  bool any = false;
  int predicate = 0;
  for (const Thread& thread : g_grid->threads) {
    if (thread.wait == Wait::kExited) continue;
    if (thread.wait != Wait::kBlock) return false;
    any = true;
    predicate |= thread.predicate;
  }
  if (!any) return false;
  ++g_grid->block_epoch;
  for (Thread& thread : g_grid->threads) {
    if (thread.wait != Wait::kBlock) continue;
    thread.wait = Wait::kNothing;
    thread.predicate = predicate;
  }
  return true;
}

std::string DescribeDeadlock() {
  std::string text = absl::StrCat(g_grid->shape->name, ", block ", Place(g_grid->block_index),
                                  ": threads wait for ever:");
  for (const Thread& thread : g_grid->threads) {
    if (thread.wait == Wait::kExited) continue;
    absl::StrAppend(&text, " ", thread.number, " in ",
                    thread.wait == Wait::kBlock ? "__syncthreads" : thread.operation);
    if (text.size() > 300) return text + " ...";
  }
  return text;
}

void RunBlock(std::minstd_rand* random) {
  std::vector<size_t> order(g_grid->threads.size());
  std::iota(order.begin(), order.end(), size_t{0});
  while (true) {
    std::shuffle(order.begin(), order.end(), *random);
    bool ran = false;
    bool alive = false;
    for (const size_t i : order) {
      Thread& thread = g_grid->threads[i];
      if (thread.wait == Wait::kNothing) {
        ran = true;
        if (!RunThread(&thread)) return;
      }
      alive = alive || thread.wait != Wait::kExited;
    }
    if (OpenBarrier()) ran = true;
    if (!alive) return;
    if (!ran) {
      g_grid->fault = DescribeDeadlock();
      return;
    }
  }
}

void StartBlock(const Extent& index) {
  g_grid->block_index = index;
  g_grid->block_epoch = 0;
  for (size_t i = 0; i < g_grid->warps.size(); ++i) {
    const size_t left = g_grid->threads.size() - i * kWarpSize;
    g_grid->warps[i] = {0, left >= kWarpSize ? 0xffffffffu : (1u << left) - 1, {}};
  }
  std::fill(g_grid->shared.begin(), g_grid->shared.end(), std::byte{0xff});
  g_grid->shadow.Reset(g_grid->shape->shared_bytes);
  for (size_t i = 0; i < g_grid->threads.size(); ++i) {
    Thread& thread = g_grid->threads[i];
    thread = Thread{};
    thread.number = static_cast<int>(i);
    const Extent size = g_grid->shape->block;
    const auto number = static_cast<unsigned>(i);
    thread.index = {number % size.x, number / size.x % size.y, number / (size.x * size.y)};
    thread.fiber = context::make_fcontext(FiberStacks::Get().Top(thread.number),
                                          FiberStacks::kStackBytes, ThreadMain);
  }
}

void CheckShared(const void* address, size_t bytes, bool is_write) {
  const auto begin =
      static_cast<size_t>(static_cast<const std::byte*>(address) - g_grid->shared_begin);
  if (begin + bytes > g_grid->shape->shared_bytes) {
    Fault(absl::StrCat(is_write ? "writes " : "reads ", bytes, " bytes at shared byte ", begin,
                       " of ", g_grid->shape->shared_bytes));
  }
  const Moment now = Now(*g_grid->current);
  const std::string fault =
      is_write ? g_grid->shadow.Write(now, begin, bytes) : g_grid->shadow.Read(now, begin, bytes);
  if (!fault.empty()) Fault(fault);
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

std::string RunGrid(const GridShape& shape, uint64_t seed, const std::function<void()>& kernel) {
  const DeviceMemory::Window window;
  Grid grid;
  grid.shape = &shape;
  grid.kernel = &kernel;
  const size_t num_threads = size_t{shape.block.x} * shape.block.y * shape.block.z;
  grid.threads.resize(num_threads);
  grid.warps.resize((num_threads + kWarpSize - 1) / kWarpSize);
  // Room behind the end, so that reads past it are known as such.
  grid.shared.resize(shape.shared_bytes + 8192);
  const auto address = reinterpret_cast<uintptr_t>(grid.shared.data());
  grid.shared_begin = grid.shared.data() + (1024 - address % 1024);
  g_grid = &grid;
  std::minstd_rand random(static_cast<uint32_t>(seed));
  Extent index;
  for (index.z = 0; index.z < shape.grid.z; ++index.z) {
    for (index.y = 0; index.y < shape.grid.y; ++index.y) {
      for (index.x = 0; index.x < shape.grid.x && grid.fault.empty(); ++index.x) {
        StartBlock(index);
        RunBlock(&random);
      }
    }
  }
  g_grid = nullptr;
  return grid.fault;
}

bool InKernel() { return g_grid != nullptr && g_grid->current != nullptr; }
int ThreadNumber() { return g_grid->current->number; }
int LaneIndex() { return g_grid->current->lane(); }
Extent BlockIndex() { return g_grid->block_index; }
Extent BlockSize() { return g_grid->shape->block; }
Extent GridSize() { return g_grid->shape->grid; }
std::byte* SharedMemory() { return g_grid->shared_begin; }

Extent ThreadIndex() { return g_grid->current->index; }

void Fault(const std::string& message) {
  if (g_grid->fault.empty()) {
    g_grid->fault = absl::StrCat(g_grid->shape->name, ", block ", Place(g_grid->block_index),
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
  if (DeviceMemory::Get().Contains(address, bytes)) return;
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
  if (begin + whole > g_grid->shape->shared_bytes) {
    Fault("cp.async beyond the end of shared memory");
  }
  if (bytes > 0 && !DeviceMemory::Get().Contains(source, static_cast<size_t>(bytes))) {
    Fault("cp.async from outside of every allocation");
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
