// An order is drawn piece by piece, among those that wait for nothing any more.
#include "tests/cuda_on_cpu/graph_work.h"

#include <utility>

#include "tests/cuda_on_cpu/gpu.h"

namespace llm::cuda_on_cpu {

void Append(std::function<void()> work, GraphWork* graph) {
  GraphPiece piece = {std::move(work), {}, Gpu::current_device()};
  if (!graph->empty()) piece.after.push_back(graph->size() - 1);
  graph->push_back(std::move(piece));
}

std::vector<size_t> DrawOrder(const GraphWork& graph, const std::function<size_t()>& draw) {
  std::vector<std::vector<size_t>> next(graph.size());
  std::vector<size_t> num_before(graph.size());
  std::vector<size_t> free, order;
  for (size_t i = 0; i < graph.size(); ++i) {
    for (const size_t before : graph[i].after) next[before].push_back(i);
    num_before[i] = graph[i].after.size();
    if (num_before[i] == 0) free.push_back(i);
  }
  while (!free.empty()) {
    std::swap(free[draw() % free.size()], free.back());
    const size_t place = free.back();
    free.pop_back();
    order.push_back(place);
    for (const size_t i : next[place]) {
      if (--num_before[i] == 0) free.push_back(i);
    }
  }
  return order;
}

}  // namespace llm::cuda_on_cpu
