// A grid while it runs: its block, the threads of that, and what they wait for.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/shared_shadow.h"

namespace llm::cuda_on_cpu {

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
  boost::context::detail::fcontext_t fiber = nullptr;
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
  GridShape shape;
  int device = 0;
  std::function<void()> kernel;
  Extent block_index;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  uint32_t block_epoch = 0;
  std::vector<std::byte> shared;  // its first bytes up to a multiple of 1,024 are left out
  std::byte* shared_begin = nullptr;
  SharedShadow shadow;
  Thread* current = nullptr;
  boost::context::detail::fcontext_t scheduler = nullptr;
  std::string fault;
};

extern Grid* g_grid;  // the one that runs: one at a time does

void SwitchToScheduler();  // from a thread of g_grid
std::string Place(const Extent& e);

// Runs a grid in steps, between which others may run. Blocks come one after the other, in an order
// that the seed draws.
class GridRun {
 public:
  GridRun(const GridShape& shape, uint64_t seed, int device, const std::function<void()>& kernel);
  ~GridRun();
  GridRun(const GridRun&) = delete;
  GridRun& operator=(const GridRun&) = delete;

  // Every thread of a block that can goes on until it waits. False when that was the last step.
  bool Step();
  const std::string& fault() const { return grid_.fault; }

 private:
  void StartBlock();
  void RunThreads();
  void NextBlock();

  Grid grid_;
  std::minstd_rand random_;
  std::vector<size_t> order_;
  int stacks_;
  uint64_t num_blocks_;
  uint64_t num_left_;
  uint64_t block_ = 0;   // by number
  uint64_t stride_ = 1;  // to the next one, without a common divisor with num_blocks_
  bool in_block_ = false;
};

}  // namespace llm::cuda_on_cpu
