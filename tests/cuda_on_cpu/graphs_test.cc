// Recorded kernels run when their graph is launched, with the arguments that they were added with,
// in an order that the edges allow.
#include <set>

#include "kernels/cuda/cuda_device.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/owned_uploads.h"
#include "tests/cuda_on_cpu/rule_kernels.h"

namespace llm {
namespace {

class GraphsTest : public GpuTest {
 protected:
  GraphsTest() { Begin(); }
  void Begin() {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    graph_ = GraphOwner(graph);
    recording_ = std::make_unique<GraphRecording>(graph);
  }
  LaunchStream into_graph() const { return {stream_.get(), recording_.get()}; }
  GraphExecOwner End() {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph_.get()), cudaSuccess);
    graph_.Reset();
    return GraphExecOwner(exec);
  }
  cudaError_t Sum(LaunchStream stream, int count = 64) const {
    return LaunchTreeSum({in_.get(), out_.get(), count}, 1, stream);
  }
  cudaError_t Count(LaunchStream stream) const {
    return LaunchCount({nullptr, out_.get(), 0}, stream);
  }
  cudaError_t Launch(const GraphExecOwner& exec) const {
    return cudaGraphLaunch(exec.get(), stream_.get());
  }
  float Wait() {
    EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
    return out_.Read()[0];
  }
  cuda_on_cpu::DeviceMemory& memory() { return cuda_on_cpu::DeviceMemory::Get(); }

  StreamOwner stream_ = std::move(CreateStream()).value();
  StreamOwner other_ = std::move(CreateStream()).value();
  GraphOwner graph_;
  std::unique_ptr<GraphRecording> recording_;
  DeviceFloats in_{std::vector<float>(64, 1.0f)};
  DeviceFloats out_{std::vector<float>{0}};
};

TEST_F(GraphsTest, RecordedWorkRunsInItsOrderOnceForEachLaunch) {
  ASSERT_EQ(Sum(into_graph()), cudaSuccess);
  ASSERT_EQ(Count(into_graph()), cudaSuccess);
  const GraphExecOwner exec = End();
  EXPECT_EQ(Wait(), 0.0f);
  EXPECT_EQ(gpu().num_launches(), 0);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(Launch(exec), cudaSuccess);
    EXPECT_EQ(gpu().num_launches(), 2 * (i - 1));  // not yet
    EXPECT_EQ(Wait(), 64.0f + 288.0f);
    EXPECT_EQ(gpu().num_launches(), 2 * i);
    EXPECT_EQ(gpu().num_graph_launches(), i);
  }
}

TEST_F(GraphsTest, WorkWithoutAnEdgeBetweenRunsInAnyOrder) {
  ASSERT_EQ(Sum(into_graph()), cudaSuccess);
  GraphRecording beside(graph_.get());  // knows of no work before
  ASSERT_EQ(Count({stream_.get(), &beside}), cudaSuccess);
  const GraphExecOwner exec = End();
  std::set<float> results;
  for (int i = 0; i < 32; ++i) {
    ASSERT_EQ(Launch(exec), cudaSuccess);
    results.insert(Wait());
  }
  EXPECT_EQ(results, (std::set<float>{64.0f, 64.0f + 288.0f}));
}

TEST_F(GraphsTest, ArgumentsAreThoseOfTheRecordingAndMemoryThatOfTheRun) {
  int count = 64;
  ASSERT_EQ(Sum(into_graph(), count), cudaSuccess);
  const GraphExecOwner exec = End();
  count = 2;
  in_.Write(std::vector<float>(64, 2.0f));
  ASSERT_EQ(Launch(exec), cudaSuccess);
  EXPECT_EQ(Wait(), 128.0f);
}

TEST_F(GraphsTest, AnExecutableGraphOutlivesItsGraphAndItsLaunchesOutliveIt) {
  ASSERT_EQ(Sum(into_graph()), cudaSuccess);
  GraphExecOwner exec = End();
  ASSERT_EQ(Launch(exec), cudaSuccess);
  exec.Reset();
  EXPECT_EQ(Wait(), 64.0f);
}

TEST_F(GraphsTest, LaunchesOnTwoStreamsRunOneAfterTheOther) {
  ASSERT_EQ(Count(into_graph()), cudaSuccess);
  const GraphExecOwner exec = End();
  ASSERT_EQ(Launch(exec), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec.get(), other_.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(other_.get()), cudaSuccess);
  EXPECT_EQ(out_.Read()[0], 576.0f);
}

TEST_F(GraphsTest, LaunchLimitsHoldForWhatIsRecorded) {
  const auto record = [&](dim3 grid, dim3 block, size_t shared_bytes) {
    return LaunchEmpty(grid, block, shared_bytes, into_graph());
  };
  EXPECT_EQ(record(dim3(1), dim3(1024), 48 * 1024), cudaSuccess);
  EXPECT_EQ(record(dim3(1), dim3(32), 99 * 1024), cudaSuccess);  // `Launch` asks for so much
  EXPECT_EQ(record(dim3(1), dim3(32), 99 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_EQ(record(dim3(0), dim3(32), 0), cudaErrorInvalidValue);
  EXPECT_EQ(record(dim3(1, 65536), dim3(32), 0), cudaErrorInvalidValue);
  EXPECT_EQ(record(dim3(1), dim3(1025), 0), cudaErrorInvalidValue);
  End();
}

TEST_F(GraphsTest, AnEdgeComesFromAnotherNodeOfTheSameGraphAndOnce) {
  ASSERT_EQ(Sum(into_graph()), cudaSuccess);  // the kernel is known
  cudaGraph_t other = nullptr;
  ASSERT_EQ(cudaGraphCreate(&other, 0), cudaSuccess);
  const GraphOwner owner(other);
  const RuleArgs args = {in_.get(), out_.get(), 64};
  void* values[] = {const_cast<RuleArgs*>(&args)};
  cudaKernelNodeParams params = {};
  params.func = const_cast<void*>(gpu().kernels().begin()->first);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = values;
  cudaGraphNode_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaGraphAddKernelNode(&first, other, nullptr, 0, &params), cudaSuccess);
  EXPECT_EQ(cudaGraphAddKernelNode(&second, graph_.get(), &first, 1, &params),
            cudaErrorInvalidValue);
  const cudaGraphNode_t twice[] = {first, first};
  EXPECT_EQ(cudaGraphAddKernelNode(&second, other, twice, 2, &params), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddKernelNode(&second, nullptr, nullptr, 0, &params), cudaErrorInvalidValue);
  params.kernelParams = nullptr;
  EXPECT_EQ(cudaGraphAddKernelNode(&second, other, &first, 1, &params), cudaErrorInvalidValue);
  params.kernelParams = values;
  params.func = values;  // no kernel
  EXPECT_EQ(cudaGraphAddKernelNode(&second, other, &first, 1, &params),
            cudaErrorInvalidDeviceFunction);
}

TEST_F(GraphsTest, AnExecutableGraphTakesDeviceMemory) {
  const size_t before = memory().allocated_bytes();
  const size_t limit = memory().limit_bytes();
  ASSERT_EQ(Sum(into_graph()), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  memory().set_limit_bytes(before + 100);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph_.get()), cudaErrorMemoryAllocation);
  memory().set_limit_bytes(limit);
  GraphExecOwner owner = End();
  EXPECT_GT(memory().allocated_bytes(), before);
  owner.Reset();
  EXPECT_EQ(memory().allocated_bytes(), before);
}

TEST_F(GraphsTest, AGraphIsOfOneDevice) {
  gpu().set_num_devices(2);
  ASSERT_EQ(Sum(into_graph()), cudaSuccess);
  {
    const ScopedCudaDevice scope(1);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph_.get()), cudaErrorInvalidValue);
    const StreamOwner stream = std::move(CreateStream()).value();
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const GraphExecOwner owner = End();
    EXPECT_EQ(cudaGraphLaunch(owner.get(), stream.get()), cudaErrorInvalidValue);
  }
}

TEST_F(GraphsTest, EveryCallCanFail) {
  const auto run = [&] {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaError_t error = cudaGraphCreate(&graph, 0);
    if (error != cudaSuccess) return error;
    const GraphOwner owner(graph);
    GraphRecording recording(graph);
    error = Sum({stream_.get(), &recording});
    if (error == cudaSuccess) error = cudaGraphInstantiate(&exec, graph);
    if (error == cudaSuccess) error = cudaGraphLaunch(exec, stream_.get());
    const GraphExecOwner exec_owner(exec);
    return error;
  };
  for (const char* call : {"cudaGraphCreate", "LoadKernel", "cudaGraphAddKernelNode",
                           "cudaGraphInstantiate", "cudaGraphLaunch"}) {
    gpu().FailNext(call, cudaErrorUnknown);
    EXPECT_EQ(run(), cudaErrorUnknown) << call;
    EXPECT_EQ(gpu().failed_call(), call);
  }
  EXPECT_EQ(Wait(), 0.0f);
  EXPECT_EQ(run(), cudaSuccess);
  EXPECT_EQ(Wait(), 64.0f);
}

// The backend's stream, with its terms.
class RecordingStreamTest : public GraphsTest {
 protected:
  OwnedUploads memory_ = std::move(OwnedUploads::Create(1024)).value();
  std::unique_ptr<DeviceStream> device_stream_ =
      std::move(
          CudaDeviceStream::Create(0, {.device = static_cast<std::byte*>(memory_.device.get()),
                                       .pinned = static_cast<std::byte*>(memory_.pinned.get()),
                                       .staged = static_cast<std::byte*>(memory_.staged.get()),
                                       .bytes = 1024}))
          .value();
  LaunchStream launches() const {
    return static_cast<const CudaDeviceStream&>(*device_stream_).launches().stream;
  }
};

TEST_F(RecordingStreamTest, TheHostMayWaitForTheDeviceWhileAGraphIsRecorded) {
  ASSERT_TRUE(device_stream_->Begin(/*ahead=*/false).ok());
  ASSERT_TRUE(device_stream_->BeginRecording().ok());
  ASSERT_EQ(Sum(launches()), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  out_.Write({7});  // on the default stream
  ASSERT_EQ(Count(launches()), cudaSuccess);
  const auto graph = device_stream_->EndRecording();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(out_.Read()[0], 7.0f);
  ASSERT_TRUE(device_stream_->Launch(**graph).ok());
  ASSERT_TRUE(device_stream_->Wait().ok());
  EXPECT_EQ(out_.Read()[0], 64.0f + 288.0f);
  EXPECT_EQ(gpu().num_captures(), 0);
}

TEST_F(RecordingStreamTest, WhatCannotBeRecordedIsRefusedAndNotDone) {
  PinnedMemoryOwner pinned = std::move(AllocatePinned(4, "test")).value();
  ASSERT_TRUE(device_stream_->Begin(/*ahead=*/false).ok());
  EXPECT_FALSE(device_stream_->EndRecording().ok());
  ASSERT_TRUE(device_stream_->BeginRecording().ok());
  EXPECT_TRUE(absl::IsUnimplemented(device_stream_->CopyIn(out_.get(), pinned.get(), 4)));
  EXPECT_TRUE(absl::IsUnimplemented(device_stream_->CopyOut(pinned.get(), out_.get(), 4)));
  EXPECT_TRUE(absl::IsUnimplemented(device_stream_->CopyWithin(out_.get(), in_.get(), 4)));
  EXPECT_TRUE(absl::IsUnimplemented(device_stream_->Clear(out_.get(), 4)));
  ASSERT_TRUE(device_stream_->EndRecording().ok());
  ASSERT_TRUE(device_stream_->CopyWithin(out_.get(), in_.get(), 4).ok());
  ASSERT_TRUE(device_stream_->Wait().ok());
  EXPECT_EQ(out_.Read()[0], 1.0f);
}

}  // namespace
}  // namespace llm
