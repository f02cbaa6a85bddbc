// What the handles of the emulated runtime's graphs point to.
#pragma once

#include <cstddef>
#include <deque>

#include "tests/cuda_on_cpu/graph_work.h"
#include "tests/cuda_on_cpu/shadow/cuda_runtime_api.h"

struct CUgraphNode_st {
  size_t place = 0;
};

struct CUgraph_st {
  llm::cuda_on_cpu::GraphWork work;
  std::deque<CUgraphNode_st> nodes;  // whose addresses are handles
};
