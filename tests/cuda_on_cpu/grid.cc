// Who runs when: threads of a block, blocks of a grid.
#include "tests/cuda_on_cpu/grid.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/fiber_stacks.h"

namespace llm::cuda_on_cpu {

namespace context = boost::context::detail;

Grid* g_grid = nullptr;

std::string Place(const Extent& e) { return absl::StrCat("(", e.x, ", ", e.y, ", ", e.z, ")"); }

void SwitchToScheduler() {
  const context::transfer_t back = context::jump_fcontext(g_grid->scheduler, nullptr);
  g_grid->scheduler = back.fctx;
}

namespace {

void ThreadMain(context::transfer_t from) {
  g_grid->scheduler = from.fctx;
  g_grid->kernel();
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
  std::string text = absl::StrCat(g_grid->shape.name, ", block ", Place(g_grid->block_index),
                                  ": threads wait for ever:");
  for (const Thread& thread : g_grid->threads) {
    if (thread.wait == Wait::kExited) continue;
    absl::StrAppend(&text, " ", thread.number, " in ",
                    thread.wait == Wait::kBlock ? "__syncthreads" : thread.operation);
    if (text.size() > 300) return text + " ...";
  }
  return text;
}

}  // namespace

GridRun::GridRun(const GridShape& shape, uint64_t seed, int device,
                 const std::function<void()>& kernel)
    : random_(static_cast<uint32_t>(seed)),
      stacks_(FiberStacks::Get().Take()),
      num_blocks_(uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z),
      num_left_(num_blocks_) {
  grid_.shape = shape;
  grid_.device = device;
  grid_.kernel = kernel;
  if (stacks_ < 0) grid_.fault = absl::StrCat(shape.name, ": too many kernels run at once");
  const size_t num_threads = size_t{shape.block.x} * shape.block.y * shape.block.z;
  grid_.threads.resize(num_threads);
  grid_.warps.resize((num_threads + kWarpSize - 1) / kWarpSize);
  // Room behind the end, so that reads past it are known as such.
  grid_.shared.resize(shape.shared_bytes + 8192);
  const auto address = reinterpret_cast<uintptr_t>(grid_.shared.data());
  grid_.shared_begin = grid_.shared.data() + (1024 - address % 1024);
  order_.resize(num_threads);
  std::iota(order_.begin(), order_.end(), size_t{0});
  block_ = random_() % num_blocks_;
  do {
    stride_ = 1 + random_() % num_blocks_;
  } while (std::gcd(stride_, num_blocks_) != 1);
}

GridRun::~GridRun() {
  if (stacks_ >= 0) FiberStacks::Get().Return(stacks_);
}

void GridRun::StartBlock() {
  const Extent& grid = grid_.shape.grid;
  grid_.block_index = {static_cast<unsigned>(block_ % grid.x),
                       static_cast<unsigned>(block_ / grid.x % grid.y),
                       static_cast<unsigned>(block_ / grid.x / grid.y)};
  grid_.block_epoch = 0;
  for (size_t i = 0; i < grid_.warps.size(); ++i) {
    const size_t left = grid_.threads.size() - i * kWarpSize;
    grid_.warps[i] = {0, left >= kWarpSize ? 0xffffffffu : (1u << left) - 1, {}};
  }
  std::fill(grid_.shared.begin(), grid_.shared.end(), std::byte{0xff});
  grid_.shadow.Reset(grid_.shape.shared_bytes);
  for (size_t i = 0; i < grid_.threads.size(); ++i) {
    Thread& thread = grid_.threads[i];
    thread = Thread{};
    thread.number = static_cast<int>(i);
    const Extent size = grid_.shape.block;
    const auto number = static_cast<unsigned>(i);
    thread.index = {number % size.x, number / size.x % size.y, number / (size.x * size.y)};
    thread.fiber = context::make_fcontext(FiberStacks::Get().Top(stacks_, thread.number),
                                          FiberStacks::kStackBytes, ThreadMain);
  }
  in_block_ = true;
}

void GridRun::RunThreads() {
  std::shuffle(order_.begin(), order_.end(), random_);
  bool ran = false;
  bool alive = false;
  for (const size_t i : order_) {
    Thread& thread = grid_.threads[i];
    if (thread.wait == Wait::kNothing) {
      ran = true;
      if (!RunThread(&thread)) return;
    }
    alive = alive || thread.wait != Wait::kExited;
  }
  if (OpenBarrier()) ran = true;
  if (!alive) return NextBlock();
  if (!ran) grid_.fault = DescribeDeadlock();
}

void GridRun::NextBlock() {
  in_block_ = false;
  block_ = (block_ + stride_) % num_blocks_;
  --num_left_;
}

bool GridRun::Step() {
  if (!grid_.fault.empty()) return false;
  const DeviceMemory::Window window;
  Grid* const outer = std::exchange(g_grid, &grid_);
  if (!in_block_) StartBlock();
  RunThreads();
  g_grid = outer;
  return grid_.fault.empty() && num_left_ > 0;
}

}  // namespace llm::cuda_on_cpu
