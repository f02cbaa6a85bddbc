// Work of a graph: pieces, and which of them wait for which.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace llm::cuda_on_cpu {

struct GraphPiece {
  std::function<void()> work;
  std::vector<size_t> after;  // places of pieces that are done before, all of them earlier ones
  int device = 0;
};

// What an executable graph has of it is never changed again: its launches that are still to come
// share it.
using GraphWork = std::vector<GraphPiece>;

// Behind the last piece, as on a stream.
void Append(std::function<void()> work, GraphWork* graph);

// The pieces' places in an order that the edges allow. `draw` gives the numbers that choose it.
std::vector<size_t> DrawOrder(const GraphWork& graph, const std::function<size_t()>& draw);

}  // namespace llm::cuda_on_cpu
