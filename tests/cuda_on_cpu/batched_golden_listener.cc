// Beside tests/golden/batched_golden_test.cc: a device that has fp8, and whether its library was
// asked.
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/gpu.h"
#include "tests/cuda_on_cpu/libraries.h"

namespace llm {
namespace {

using cuda_on_cpu::Gpu;
using cuda_on_cpu::Libraries;

class LibraryListener : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*info*/) override {
    Gpu::Get().Reset();
    Gpu::Get().set_capability(8, 9);
    Libraries::Get().Reset();
  }
  void OnTestEnd(const testing::TestInfo& info) override {
    if (info.result()->Passed() && Libraries::Get().num_products == 0) {
      ADD_FAILURE() << "nothing went to the library";
    }
  }
};

const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new LibraryListener);
  return true;
}();

}  // namespace
}  // namespace llm
