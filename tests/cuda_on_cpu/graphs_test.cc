// Captured work runs when its graph is launched, as it was captured; what may not be done meanwhile
// ends the capture.
#include <thread>

#include "kernels/cuda/cuda_status.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/rule_kernels.h"

namespace llm {
namespace {

class GraphsTest : public GpuTest {
 protected:
  void Begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_.get(), mode), cudaSuccess);
  }
  cudaGraphExec_t End() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
  }
  // The capture was ended by an error, and the stream is as before.
  void ExpectEnded() {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    ASSERT_EQ(cudaStreamIsCapturing(stream_.get(), &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(Sum(&in_, &out_), cudaErrorStreamCaptureInvalidated);
    cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(&status);
    EXPECT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(Sum(&in_, &out_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
    EXPECT_EQ(out_.Read()[0], 64.0f);
    out_.Write({0});
  }
  cudaError_t Sum(const DeviceFloats* in, const DeviceFloats* out, int count = 64) {
    return LaunchTreeSum({in->get(), out->get(), count}, 1, stream_.get());
  }
  float Wait() {
    EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
    return out_.Read()[0];
  }

  StreamOwner stream_ = std::move(CreateStream()).value();
  StreamOwner other_ = std::move(CreateStream()).value();
  EventOwner event_ = std::move(CreateEvent()).value();
  DeviceFloats in_{std::vector<float>(64, 1.0f)};
  DeviceFloats out_{std::vector<float>{0}};
};

TEST_F(GraphsTest, CapturedWorkRunsOnceForEachLaunch) {
  Begin();
  ASSERT_EQ(Sum(&in_, &out_), cudaSuccess);
  ASSERT_EQ(LaunchCount({nullptr, out_.get(), 0}, stream_.get()), cudaSuccess);
  cudaGraphExec_t exec = End();
  EXPECT_EQ(Wait(), 0.0f);
  EXPECT_EQ(gpu().num_launches(), 0);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(cudaGraphLaunch(exec, stream_.get()), cudaSuccess);
    EXPECT_EQ(gpu().num_launches(), 2 * (i - 1));  // not yet
    EXPECT_EQ(Wait(), 64.0f + 288.0f);
    EXPECT_EQ(gpu().num_launches(), 2 * i);
    EXPECT_EQ(gpu().num_graph_launches(), i);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphsTest, ParametersAreThoseOfTheCaptureAndMemoryThatOfTheRun) {
  PinnedMemoryOwner pinned = std::move(AllocatePinned(4, "test")).value();
  float* host = static_cast<float*>(pinned.get());
  int count = 64;
  *host = 1;
  Begin();
  ASSERT_EQ(Sum(&in_, &out_, count), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(in_.get(), host, 4, cudaMemcpyHostToDevice, stream_.get()),
            cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(in_.get() + 1, 0, 4, stream_.get()), cudaSuccess);
  cudaGraphExec_t exec = End();
  count = 2;
  *host = 5;
  ASSERT_EQ(cudaGraphLaunch(exec, stream_.get()), cudaSuccess);
  *host = 7;  // the stream has not come to the copy
  EXPECT_EQ(Wait(), 64.0f);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_.get()), cudaSuccess);
  EXPECT_EQ(Wait(), 62.0f + 7.0f);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphsTest, AnExecutableGraphOutlivesItsGraphAndItsLaunchesOutliveIt) {
  Begin();
  ASSERT_EQ(Sum(&in_, &out_), cudaSuccess);
  cudaGraphExec_t exec = End();
  ASSERT_EQ(cudaGraphLaunch(exec, stream_.get()), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(Wait(), 64.0f);
}

TEST_F(GraphsTest, LaunchesOnTwoStreamsRunOneAfterTheOther) {
  Begin();
  ASSERT_EQ(LaunchCount({nullptr, out_.get(), 0}, stream_.get()), cudaSuccess);
  cudaGraphExec_t exec = End();
  ASSERT_EQ(cudaGraphLaunch(exec, stream_.get()), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, other_.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(other_.get()), cudaSuccess);
  EXPECT_EQ(out_.Read()[0], 576.0f);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphsTest, CallsThatWaitEndTheCapture) {
  const auto ended_by = [&](const auto& call) {
    Begin();
    ASSERT_EQ(Sum(&in_, &out_), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    ExpectEnded();
  };
  void* memory = nullptr;
  ended_by([&] { return cudaStreamSynchronize(stream_.get()); });
  ended_by([&] { return cudaDeviceSynchronize(); });
  ended_by([&] { return cudaEventQuery(event_.get()); });
  ended_by([&] { return cudaEventSynchronize(event_.get()); });
  ended_by([&] { return cudaMalloc(&memory, 16); });
  ended_by([&] { return cudaFree(memory); });
  ended_by([&] { return cudaHostAlloc(&memory, 16, 0); });
  float host = 0;
  ended_by(
      [&] { return cudaMemcpyAsync(out_.get(), &host, 4, cudaMemcpyHostToDevice, stream_.get()); });
  ended_by(
      [&] { return cudaMemcpyAsync(&host, out_.get(), 4, cudaMemcpyDeviceToHost, stream_.get()); });
}

TEST_F(GraphsTest, ModesSayWhoMayAllocateMeanwhile) {
  const auto allocate = [] {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, 16);
    return error == cudaSuccess ? cudaFree(memory) : error;
  };
  const auto elsewhere = [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = allocate(); }).join();
    return error;
  };
  Begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(allocate(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaErrorStreamCaptureUnsupported);
  ExpectEnded();
  Begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(elsewhere(), cudaSuccess);
  EXPECT_EQ(allocate(), cudaErrorStreamCaptureUnsupported);
  ExpectEnded();
  Begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(elsewhere(), cudaErrorStreamCaptureUnsupported);
  ExpectEnded();
}

TEST_F(GraphsTest, ACapturedEventIsNoPlaceInAStream) {
  Begin(cudaStreamCaptureModeRelaxed);
  ASSERT_EQ(cudaEventRecord(event_.get(), stream_.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream_.get(), event_.get(), 0), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_.get()), cudaErrorCapturedEvent);
  ExpectEnded();
  EXPECT_EQ(cudaEventSynchronize(event_.get()), cudaErrorCapturedEvent);
  ASSERT_EQ(cudaEventRecord(event_.get(), stream_.get()), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event_.get()), cudaSuccess);
  Begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaStreamWaitEvent(stream_.get(), event_.get(), 0), cudaErrorStreamCaptureIsolation);
  ExpectEnded();
}

TEST_F(GraphsTest, BeginAndEndBelongTogether) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed),
            cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaErrorIllegalState);
  Begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal),
            cudaErrorIllegalState);
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  ExpectEnded();
}

TEST_F(GraphsTest, AnExecutableGraphTakesDeviceMemory) {
  cuda_on_cpu::DeviceMemory& memory = cuda_on_cpu::DeviceMemory::Get();
  const size_t before = memory.allocated_bytes();
  const size_t limit = memory.limit_bytes();
  Begin();
  ASSERT_EQ(Sum(&in_, &out_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  memory.set_limit_bytes(before + 100);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph), cudaErrorMemoryAllocation);
  memory.set_limit_bytes(limit);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  EXPECT_GT(memory.allocated_bytes(), before);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(memory.allocated_bytes(), before);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphsTest, EveryCallCanFail) {
  const auto run = [&] {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaError_t error = cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) return error;
    error = Sum(&in_, &out_);
    while (cudaStreamEndCapture(stream_.get(), &graph) != cudaSuccess) error = cudaErrorUnknown;
    if (error == cudaSuccess) error = cudaGraphInstantiate(&exec, graph);
    if (error == cudaSuccess) error = cudaGraphLaunch(exec, stream_.get());
    (void)cudaGraphDestroy(graph);
    if (exec != nullptr) (void)cudaGraphExecDestroy(exec);
    return error;
  };
  for (const char* call : {"cudaStreamBeginCapture", "SubmitGrid", "cudaStreamEndCapture",
                           "cudaGraphInstantiate", "cudaGraphLaunch"}) {
    for (int64_t i = 0; gpu().failed_call() != call; ++i) {
      ASSERT_LT(i, 8) << call;
      gpu().FailCall(i, cudaErrorUnknown);
      const cudaError_t error = run();
      if (gpu().failed_call() != call) continue;
      EXPECT_EQ(error, cudaErrorUnknown) << call;
    }
  }
  gpu().FailCall(1 << 20, cudaErrorUnknown);
  EXPECT_EQ(run(), cudaSuccess);
  EXPECT_EQ(Wait(), 64.0f);
}

}  // namespace
}  // namespace llm
