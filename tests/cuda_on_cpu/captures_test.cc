// What a host's capture of its own streams forbids beside it, and that the backend does not end it.
#include <thread>

#include "kernels/cuda/cuda_device.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/rule_kernels.h"

namespace llm {
namespace {

class CapturesTest : public GpuTest {
 protected:
  void Begin(cudaStreamCaptureMode mode) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_.get(), mode), cudaSuccess);
  }
  cudaError_t Sum() { return LaunchTreeSum({in_.get(), out_.get(), 64}, 1, stream_.get()); }
  void ExpectEnded() {
    EXPECT_EQ(Sum(), cudaErrorStreamCaptureInvalidated);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(Sum(), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  }
  void ExpectGoesOn() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaSuccess);
    GraphOwner(graph).Reset();
  }
  static cudaError_t Allocate() {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, 16);
    return error == cudaSuccess ? cudaFree(memory) : error;
  }
  template <typename Call>
  static cudaError_t Elsewhere(const Call& call) {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = call(); }).join();
    return error;
  }

  StreamOwner stream_ = std::move(CreateStream()).value();
  StreamOwner other_ = std::move(CreateStream()).value();
  EventOwner event_ = std::move(CreateEvent()).value();
  DeviceFloats in_{std::vector<float>(64, 1.0f)};
  DeviceFloats out_{std::vector<float>{0}};
};

TEST_F(CapturesTest, CapturedWorkRunsWhenItsGraphIsLaunched) {
  Begin(cudaStreamCaptureModeGlobal);
  ASSERT_EQ(Sum(), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaSuccess);
  const GraphOwner owner(graph);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  const GraphExecOwner exec_owner(exec);
  EXPECT_EQ(out_.Read()[0], 0.0f);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  EXPECT_EQ(out_.Read()[0], 64.0f);
}

TEST_F(CapturesTest, CallsThatWaitEndTheCapture) {
  const auto ended_by = [&](const auto& call) {
    Begin(cudaStreamCaptureModeThreadLocal);
    ASSERT_EQ(Sum(), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    ExpectEnded();
  };
  void* memory = nullptr;
  ended_by([&] { return cudaStreamSynchronize(stream_.get()); });
  ended_by([&] { return cudaStreamSynchronize(other_.get()); });
  ended_by([&] { return cudaDeviceSynchronize(); });
  ended_by([&] { return cudaEventQuery(event_.get()); });
  ended_by([&] { return cudaEventSynchronize(event_.get()); });
  ended_by([&] { return cudaMalloc(&memory, 16); });
  ended_by([&] { return cudaFree(memory); });
  ended_by([&] { return cudaHostAlloc(&memory, 16, 0); });
}

TEST_F(CapturesTest, ModesSayWhoMayAllocateMeanwhile) {
  Begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(Allocate(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaErrorStreamCaptureUnsupported);
  ExpectEnded();
  Begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(Elsewhere(Allocate), cudaSuccess);
  EXPECT_EQ(Allocate(), cudaErrorStreamCaptureUnsupported);
  ExpectEnded();
  Begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(Elsewhere(Allocate), cudaErrorStreamCaptureUnsupported);
  ExpectEnded();
}

TEST_F(CapturesTest, AThreadInRelaxedModeMindsNoCapture) {
  const auto relaxed = [&](const auto& call) {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    const cudaError_t error = call();
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
    return error;
  };
  Begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(relaxed(Allocate), cudaSuccess);
  EXPECT_EQ(Elsewhere([&] { return relaxed(Allocate); }), cudaSuccess);
  EXPECT_EQ(relaxed([&] { return cudaStreamSynchronize(other_.get()); }), cudaSuccess);
  ExpectGoesOn();
  Begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(relaxed([] { return cudaDeviceSynchronize(); }), cudaErrorStreamCaptureUnsupported);
  ExpectEnded();
}

TEST_F(CapturesTest, BeginAndEndBelongTogether) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed),
            cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaErrorIllegalState);
  Begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal),
            cudaErrorIllegalState);
  EXPECT_EQ(Elsewhere([&] { return cudaStreamEndCapture(stream_.get(), &graph); }),
            cudaErrorStreamCaptureWrongThread);
  ExpectEnded();
}

// The host's thread is given back as it was, whatever goes wrong for us.
TEST_F(CapturesTest, OurDeviceLeavesTheHostsThreadAsItWas) {
  gpu().set_num_devices(2);
  Begin(cudaStreamCaptureModeGlobal);
  {
    const ScopedCudaDevice scope(1);
    ASSERT_TRUE(scope.status().ok());
    EXPECT_EQ(Allocate(), cudaSuccess);
  }
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuda_on_cpu::thread_capture_mode(), cudaStreamCaptureModeGlobal);
  ExpectGoesOn();
  for (const char* call : {"cudaSetDevice", "cudaEventDestroy"}) {
    const ScopedCudaDevice scope(0);
    cudaEvent_t event = std::move(CreateEvent()).value().Release();
    gpu().FailNext(call, cudaErrorUnknown);
    { const ScopedCudaDevice other(1); }
    EventOwner(event).Reset();
    EXPECT_EQ(gpu().failed_call(), call);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << call;
    if (gpu().failed_call() == "cudaEventDestroy") EventOwner(event).Reset();
  }
}

}  // namespace
}  // namespace llm
