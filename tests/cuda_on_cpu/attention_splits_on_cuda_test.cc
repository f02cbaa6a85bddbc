// Attention's rows on the device have one order of arithmetic: their bits show neither the tile nor
// the place in it, neither the chunk nor the batch, nor who merges the splits.
#include "tests/cuda_on_cpu/host_table.h"
#include "tests/cuda_on_cpu/warp.h"
#include "tests/kernels/attention_test_util.h"

namespace llm {
namespace {

// Up to 16 queries have a block for each split, more have one for all.
constexpr int kContext = 1300;
constexpr int kMany = 20;
constexpr int kFew = 3;

using cuda_on_cpu::MmaOrder;

// Tensor cores may add in any order.
class AttentionSplitsOnCudaTest : public testing::TestWithParam<MmaOrder> {
 protected:
  AttentionSplitsOnCudaTest() { cuda_on_cpu::set_mma_order(GetParam()); }
  ~AttentionSplitsOnCudaTest() override { cuda_on_cpu::set_mma_order(MmaOrder::kAscending); }
};
INSTANTIATE_TEST_SUITE_P(Orders, AttentionSplitsOnCudaTest,
                         testing::Values(MmaOrder::kAscending, MmaOrder::kPairs),
                         [](const auto& param) {
                           return param.param == MmaOrder::kPairs ? "pairs" : "ascending";
                         });

TEST_P(AttentionSplitsOnCudaTest, FewQueriesHaveTheBitsOfMany) {
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

// Each way to share a row's dimensions among warps, with every dtype; rows of 44 tokens fill tiles
// of 16, 32, 64 and 128 rows and leave the last one in part.
class AttentionRowsOnCudaTest : public testing::TestWithParam<DType> {};

TEST_P(AttentionRowsOnCudaTest, ARowHasItsBitsInEveryTileChunkAndBatch) {
  constexpr int kEnd = 546;  // the queries cross a split
  constexpr int kTokens = 44;
  for (const int head_dim : {96, 256, 320, 576}) {
    SCOPED_TRACE(head_dim);
    AttentionData data({.dtype = GetParam(),
                        .num_heads = 3,
                        .num_kv_heads = 1,
                        .head_dim = head_dim,
                        .window = 90,
                        .sinks = true},
                       {kEnd, 33});
    const ActivationMemory whole = data.Run(CudaOnCpuKernels(), {{0, kTokens, kEnd}});
    const auto expect_rows = [&](const ActivationMemory& out, int row, int count, int end) {
      const size_t bytes =
          sizeof(float) * static_cast<size_t>(count) * static_cast<size_t>(data.token_size());
      EXPECT_EQ(std::memcmp(out.Row(row), whole.Row(end - count - (kEnd - kTokens)), bytes), 0)
          << count << " queries up to " << end;
    };
    for (const int end : {kEnd, 520, 513, 512}) {
      expect_rows(data.Run(CudaOnCpuKernels(), {{0, 1, end}}), 0, 1, end);
    }
    const ActivationMemory chunks = data.Run(
        CudaOnCpuKernels(), {{1, 7, 33}, {0, 18, 520}, {1, 0, 33}, {1, 1, 20}, {0, 26, kEnd}});
    expect_rows(chunks, 7, 18, 520);
    expect_rows(chunks, 26, 26, kEnd);
  }
}

// Weighted means of 700 values stay below 1, where f32 rounds by half an epsilon: a few such
// roundings are what is left. A part that is lost shows as 2^-12 or more.
TEST_P(AttentionRowsOnCudaTest, SplitQueriesAndWeightsLoseNoMoreThanF32Does) {
  constexpr int kKeys = 700;
  for (const int head_dim : {64, 576}) {
    AttentionData data(
        {.dtype = GetParam(), .num_heads = 4, .num_kv_heads = 1, .head_dim = head_dim}, {kKeys});
    const ActivationMemory actual = data.Run(CudaOnCpuKernels(), {{0, 20, kKeys}});
    const ActivationMemory expected = data.Run(ReferenceKernels(), {{0, 20, kKeys}});
    ExpectNear(actual.values, expected.values, 8 * kFloatEpsilon);
  }
}
INSTANTIATE_TEST_SUITE_P(DTypes, AttentionRowsOnCudaTest,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                                         DType::kI8, DType::kI4),
                         [](const auto& param) { return std::string(DTypeName(param.param)); });

}  // namespace
}  // namespace llm
