// A fresh emulated device for each test, and arrays on it.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device_buffer.h"
#include "tests/cuda_on_cpu/gpu.h"

namespace llm {

// Floats on the device.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : DeviceFloats(values.size()) {
    Write(values);
  }
  explicit DeviceFloats(size_t size)
      : size_(size), memory_(std::move(AllocateDevice(size * sizeof(float), "test")).value()) {}

  float* get() const { return static_cast<float*>(memory_.get()); }
  void Write(const std::vector<float>& values) {
    EXPECT_EQ(cudaMemcpyAsync(get(), values.data(), values.size() * sizeof(float),
                              cudaMemcpyHostToDevice, nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  std::vector<float> Read() const {
    std::vector<float> values(size_);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), get(), size_ * sizeof(float), cudaMemcpyDeviceToHost,
                              nullptr),
              cudaSuccess);
    return values;
  }

 private:
  size_t size_;
  DeviceMemoryOwner memory_;
};

class GpuTest : public testing::Test {
 protected:
  GpuTest() { gpu().Reset(testing::UnitTest::GetInstance()->random_seed() + 1u); }
  ~GpuTest() override { gpu().Reset(); }
  static cuda_on_cpu::Gpu& gpu() { return cuda_on_cpu::Gpu::Get(); }

  // Expects the launch to be accepted, and its run to end with a fault that says `text`.
  void ExpectFault(cudaError_t launched, const std::string& text) {
    EXPECT_EQ(launched, cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_NE(gpu().fault().find(text), std::string::npos) << "fault: " << gpu().fault();
    gpu().Reset();
  }
  void ExpectNoFault(cudaError_t launched) {
    EXPECT_EQ(launched, cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << gpu().fault();
  }
};

}  // namespace llm
