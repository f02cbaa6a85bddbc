// Machines without a GPU are told so; of several, each has its memory, streams and events.
#include "kernels/cuda/devices.h"

#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/rule_kernels.h"

namespace llm {
namespace {

class DevicesTest : public GpuTest {};

TEST_F(DevicesTest, ListsWhatTheDriverHas) {
  gpu().set_num_devices(2);
  const absl::StatusOr<std::vector<CudaDevice>> devices = CudaDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[1].index, 1);
  EXPECT_EQ((*devices)[1].major, 8);
}

TEST_F(DevicesTest, SaysThatThereIsNoDeviceOrNoDriver) {
  gpu().set_num_devices(0);
  EXPECT_EQ(CudaDevices().status().code(), absl::StatusCode::kUnavailable);
  gpu().set_num_devices(1);
  gpu().FailCall(0, cudaErrorInsufficientDriver);
  EXPECT_EQ(CudaDevices().status().code(), absl::StatusCode::kUnavailable);
  gpu().FailCall(2, cudaErrorUnknown);
  EXPECT_EQ(CudaDevices().status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(CudaDevices().ok());
}

// Device 1 is the current one; `near` lies on it, `far` on device 0, 128 ones each.
class TwoDevicesTest : public GpuTest {
 protected:
  ~TwoDevicesTest() override { (void)cudaSetDevice(0); }

  // Also after a fault: resetting leaves one device.
  static bool SetUpDevices() {
    gpu().set_num_devices(2);
    return cudaSetDevice(1) == cudaSuccess;
  }
  static DeviceFloats On(int device, const std::vector<float>& values) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    DeviceFloats floats(values);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    return floats;
  }

  const bool set_up_ = SetUpDevices();
  const std::vector<float> ones_ = std::vector<float>(128, 1.0f);
  const DeviceFloats far_ = On(0, ones_);
  const DeviceFloats near_ = On(1, ones_);
  DeviceFloats out_ = On(1, {0});
};

TEST_F(TwoDevicesTest, EachHasItsMemory) {
  const auto free_bytes = [](int device) {
    size_t free = 0, total = 0;
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
  };
  const size_t first = free_bytes(0), second = free_bytes(1);
  const DeviceFloats more = On(1, {1, 2, 3});
  EXPECT_EQ(free_bytes(0), first);
  EXPECT_EQ(free_bytes(1), second - 3 * sizeof(float));
}

TEST_F(TwoDevicesTest, AKernelReachesThePeersMemoryOnlyWithAccess) {
  ExpectNoFault(LaunchTreeSum({near_.get(), out_.get(), 128}, 1, nullptr));
  ExpectFault(LaunchTreeSum({far_.get(), out_.get(), 128}, 1, nullptr),
              "device 1 reads 4 bytes of device 0 without peer access");
  ASSERT_TRUE(SetUpDevices());
  ExpectFault(LaunchTreeSum({near_.get(), far_.get(), 128}, 1, nullptr),
              "device 1 writes 4 bytes of device 0 without peer access");
  ASSERT_TRUE(SetUpDevices());
  const DeviceFloats copy = On(1, std::vector<float>(512));
  const DeviceFloats source = On(0, std::vector<float>(512));
  ExpectFault(LaunchAsyncCopy({source.get(), copy.get(), 512}, AsyncFault::kNone, nullptr),
              "device 1 reads 16 bytes of device 0 without peer access");
  ASSERT_TRUE(SetUpDevices());
  ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
  ExpectNoFault(LaunchTreeSum({far_.get(), out_.get(), 128}, 1, nullptr));
  EXPECT_EQ(out_.Read()[0], 128.0f);
  // Access has a direction.
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ExpectFault(LaunchTreeSum({near_.get(), far_.get(), 128}, 1, nullptr),
              "device 0 reads 4 bytes of device 1 without peer access");
}

TEST_F(TwoDevicesTest, PeerAccessIsGivenOnceAndTakenOnce) {
  int can_access = 0;
  ASSERT_EQ(cudaDeviceCanAccessPeer(&can_access, 1, 0), cudaSuccess);
  EXPECT_EQ(can_access, 1);
  ASSERT_EQ(cudaDeviceCanAccessPeer(&can_access, 1, 1), cudaSuccess);
  EXPECT_EQ(can_access, 0);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can_access, 1, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaSuccess);
  gpu().set_peers(false);
  ASSERT_EQ(cudaDeviceCanAccessPeer(&can_access, 1, 0), cudaSuccess);
  EXPECT_EQ(can_access, 0);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
}

TEST_F(TwoDevicesTest, CopiesNeedNoPeerAccess) {
  const DeviceFloats copy = On(1, {0, 0});
  ASSERT_EQ(cudaMemcpyAsync(copy.get(), far_.get(), 4, cudaMemcpyDeviceToDevice, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyPeerAsync(copy.get() + 1, 1, far_.get(), 0, 4, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(copy.Read(), (std::vector<float>{1, 1}));
  EXPECT_EQ(cudaMemcpyPeer(copy.get(), 0, far_.get(), 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeer(copy.get(), 1, far_.get(), 2, 4), cudaErrorInvalidDevice);
  // After what both devices do already.
  ASSERT_EQ(LaunchTreeSum({near_.get(), out_.get(), 128}, 1, nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemcpyPeer(far_.get(), 0, out_.get(), 1, 4), cudaSuccess);
  float first = 0;
  ASSERT_EQ(cudaMemcpy(&first, far_.get(), 4, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(first, 128.0f);
}

TEST_F(TwoDevicesTest, AStreamTakesLaunchesOfItsDeviceAloneAndCopiesOfAny) {
  const StreamOwner stream = std::move(CreateStream()).value();
  const EventOwner event = std::move(CreateEvent()).value();
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const RuleArgs args = {far_.get(), far_.get(), 128};
  EXPECT_EQ(LaunchTreeSum(args, 1, stream.get()), cudaErrorInvalidResourceHandle);
  float first = 0;
  EXPECT_EQ(cudaMemcpyAsync(&first, far_.get(), 4, cudaMemcpyDeviceToHost, stream.get()),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  // An event belongs to the device that it was created for.
  EXPECT_EQ(cudaEventRecord(event.get(), stream.get()), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event.get(), nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(event.get()), cudaSuccess);
}

TEST_F(TwoDevicesTest, AnEventOrdersStreamsOfTwoDevices) {
  const StreamOwner stream = std::move(CreateStream()).value();
  const EventOwner event = std::move(CreateEvent()).value();
  for (uint64_t seed = 1; seed < 20; ++seed) {
    gpu().Reset(seed);
    ASSERT_TRUE(SetUpDevices());
    ASSERT_EQ(LaunchTreeSum({near_.get(), out_.get(), 128}, 1, stream.get()), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event.get(), stream.get()), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(nullptr, event.get(), 0), cudaSuccess);
    float sum = 0;
    ASSERT_EQ(cudaMemcpyAsync(&sum, out_.get(), 4, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
    EXPECT_EQ(sum, 128.0f);
    ASSERT_EQ(cudaMemsetAsync(far_.get(), 0, 4, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    out_.Write({0});
  }
}

}  // namespace
}  // namespace llm
