// Splits of a query in blocks of their own, merged by a second kernel, against one block that does
// them all; also where a window leaves the first splits out.
#include "tests/cuda_on_cpu/host_table.h"
#include "tests/kernels/attention_test_util.h"

namespace llm {
namespace {

// 20 queries go through one block each, 3 through a block for each split.
constexpr int kContext = 1300;
constexpr int kMany = 20;
constexpr int kFew = 3;

TEST(AttentionSplitsOnCudaTest, FewQueriesHaveTheBitsOfMany) {
  for (const int window : {0, 30, 700}) {
    SCOPED_TRACE(window);
    AttentionData data({.dtype = DType::kF16, .num_heads = 6, .num_kv_heads = 1, .window = window},
                       {kContext, 40});
    const ActivationMemory many = data.Run(CudaOnCpuKernels(), {{0, kMany, kContext}});
    const ActivationMemory few =
        data.Run(CudaOnCpuKernels(), {{1, 2, 40}, {0, kFew, kContext}}, Forms::kBoth);
    const size_t bytes = sizeof(float) * kFew * static_cast<size_t>(data.token_size());
    EXPECT_EQ(std::memcmp(few.Row(2), many.Row(kMany - kFew), bytes), 0);
    const ActivationMemory expected = data.Run(ReferenceKernels(), {{0, kFew, kContext}});
    const Aligned<float> actual(few.Row(2), few.Row(2 + kFew));
    // As tests/kernels/attention_test.cc derives it.
    ExpectNear(actual, expected.values,
               6 * (2 * std::pow(64, 1.5) + kContext + 64) * kFloatEpsilon);
  }
}

}  // namespace
}  // namespace llm
