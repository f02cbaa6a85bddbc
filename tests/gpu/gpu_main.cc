// main of the tests that need a GPU: without one they are skipped, which says why.
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "kernels/cuda/devices.h"

namespace {

constexpr int kSkipped = 77;  // what CMakeLists.txt tells ctest

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests)) {
    const auto devices = llm::CudaDevices();
    if (!devices.ok()) {
      std::printf("skipped: %s\n", std::string(devices.status().message()).c_str());
      return kSkipped;
    }
  }
  return RUN_ALL_TESTS();
}
