// Graphs of the emulated runtime: of kernels, added one by one.
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/enter_call.h"
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/graphs.h"
#include "tests/cuda_on_cpu/launch.h"

using llm::cuda_on_cpu::DeviceMemory;
using llm::cuda_on_cpu::DrawOrder;
using llm::cuda_on_cpu::Gpu;
using llm::cuda_on_cpu::GraphPiece;
using llm::cuda_on_cpu::GraphWork;
using llm::cuda_on_cpu::GridShape;
using llm::cuda_on_cpu::LoadedKernel;
using llm::cuda_on_cpu::Queue;

namespace {

constexpr size_t kNodeBytes = 1024;  // of device memory that an executable graph takes for a node
constexpr int kMaxThreads = 1024;

// The places of a graph's own nodes, each once; false where one is not.
bool FindPlaces(const CUgraph_st& graph, const cudaGraphNode_t* nodes, size_t count,
                std::vector<size_t>* places) {
  for (size_t i = 0; i < count; ++i) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const CUgraphNode_st& node) { return &node == nodes[i]; });
    if (found == graph.nodes.end()) return false;
    if (std::find(places->begin(), places->end(), found->place) != places->end()) return false;
    places->push_back(found->place);
  }
  return true;
}

}  // namespace

struct CUgraphExec_st {
  std::shared_ptr<const GraphWork> work;
  int device = 0;
  void* memory = nullptr;
  cudaStream_t stream = nullptr;  // of the last launch, and where it ends there
  uint64_t ticket = 0;
};

namespace llm::cuda_on_cpu {

cudaError_t LoadKernel(cudaFuncAttributes* attributes, const std::string& name,
                       const Kernel& kernel) {
  LLM_ENTER_CALL();
  Gpu::Get().kernels()[kernel.address] = {name, kernel};
  *attributes = {kMaxThreads, static_cast<int>(Gpu::Get().shared_limit(kernel.address))};
  return cudaSuccess;
}

}  // namespace llm::cuda_on_cpu

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  LLM_ENTER_CALL();
  if (flags != 0) return Gpu::Get().Remember(cudaErrorInvalidValue);
  *graph = new CUgraph_st;
  return cudaSuccess;
}

// The arguments are copied now.
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t num_dependencies,
                                   const cudaKernelNodeParams* params) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  if (graph == nullptr || params == nullptr || params->extra != nullptr ||
      params->kernelParams == nullptr) {
    return gpu.Remember(cudaErrorInvalidValue);
  }
  const auto found = gpu.kernels().find(params->func);
  if (found == gpu.kernels().end()) return gpu.Remember(cudaErrorInvalidDeviceFunction);
  const LoadedKernel& loaded = found->second;
  const dim3 &grid = params->gridDim, &block = params->blockDim;
  const GridShape shape = {
      loaded.name, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, params->sharedMemBytes};
  GraphPiece piece;
  if (gpu.CheckShape(params->func, shape) != cudaSuccess ||
      !FindPlaces(*graph, dependencies, num_dependencies, &piece.after)) {
    return gpu.Remember(cudaErrorInvalidValue);
  }
  piece.work = MakeGridWork(shape, loaded.kernel, params->kernelParams[0]);
  piece.device = Gpu::current_device();
  *node = &graph->nodes.emplace_back(CUgraphNode_st{graph->work.size()});
  graph->work.push_back(std::move(piece));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  LLM_ENTER_CALL();
  if (graph == nullptr) return Gpu::Get().Remember(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

// Kernels of another device than the current one are not modelled.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  if (graph == nullptr) return gpu.Remember(cudaErrorInvalidValue);
  const int device = Gpu::current_device();
  for (const GraphPiece& piece : graph->work) {
    if (piece.device != device) return gpu.Remember(cudaErrorInvalidValue);
  }
  void* memory = gpu.graphs()
                     ? DeviceMemory::Get().Allocate((graph->work.size() + 1) * kNodeBytes, device)
                     : nullptr;
  if (memory == nullptr) return gpu.Remember(cudaErrorMemoryAllocation);
  *exec = new CUgraphExec_st{std::make_shared<const GraphWork>(graph->work), device, memory};
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  LLM_ENTER_CALL();
  if (exec == nullptr) return Gpu::Get().Remember(cudaErrorInvalidValue);
  DeviceMemory::Get().Free(exec->memory);
  delete exec;  // launches that are still to come share its work
  return cudaSuccess;
}

// One launch of a graph runs at a time, also where they are on several streams. Pieces without an
// edge between them come in any order, another one in each launch.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  LLM_ENTER_CALL();
  Gpu& gpu = Gpu::Get();
  Queue* queue = gpu.Find(stream);
  if (exec == nullptr) return gpu.Remember(cudaErrorInvalidValue);
  if (queue == nullptr) return gpu.Remember(cudaErrorInvalidResourceHandle);
  if (queue->device != exec->device) return gpu.Remember(cudaErrorInvalidValue);
  if (exec->stream != nullptr && exec->stream != stream) {
    gpu.Submit(queue, [before = exec->stream, ticket = exec->ticket] {
      Queue* other = Gpu::Get().Find(before);
      if (other != nullptr) Gpu::Get().RunUntil(other, ticket);
    });
  }
  for (const size_t place : DrawOrder(*exec->work, [&] { return gpu.Random(); })) {
    const cudaError_t error = gpu.Submit(queue, (*exec->work)[place].work);
    if (error != cudaSuccess) return gpu.Remember(error);
  }
  exec->stream = stream;
  exec->ticket = queue->submitted;
  gpu.CountGraphLaunch();
  return cudaSuccess;
}
