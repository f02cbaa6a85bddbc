// Machines without a GPU are told so.
#include "kernels/cuda/devices.h"

#include "tests/cuda_on_cpu/gpu_test_util.h"

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

}  // namespace
}  // namespace llm
