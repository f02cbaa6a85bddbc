// copy_blocks, reorder, quantize, soft_cap: every backend against the reference.
#include "kernels/rows.h"

#include <cmath>

#include "tests/kernels/kernel_test_util.h"

namespace llm {
namespace {

class RowsTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, RowsTest, testing::ValuesIn(AvailableKernels()), BackendName);

TEST_P(RowsTest, CopiesBlocksFromAnyPlaceToAnyPlace) {
  const std::vector<float> from = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // [2, 2, 3]
  std::vector<float> to(12, -1.0f);                                         // [2, 2, 3]
  CopyBlocksParams params = {.from = from.data() + 1,
                             .from_outer = 6,
                             .from_inner = 3,
                             .to = to.data(),
                             .to_outer = 3,
                             .to_inner = 6,
                             .outer = 2,
                             .inner = 2,
                             .cols = 2};
  ASSERT_TRUE(kernels().copy_blocks(params, {}).ok());
  EXPECT_EQ(to, (std::vector<float>{2, 3, -1, 8, 9, -1, 5, 6, -1, 11, 12, -1}));
  params.from = nullptr;
  ASSERT_TRUE(kernels().copy_blocks(params, {}).ok());
  EXPECT_EQ(to, (std::vector<float>{0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1}));
  params.to = nullptr;
  EXPECT_EQ(kernels().copy_blocks(params, {}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(RowsTest, ReordersColumnsAndRefusesOnesThatAreNotThere) {
  const std::vector<float> from = {1, 2, 3, 4, 5, 6};  // [2, 3]
  std::vector<float> order = {2, 0, 1};
  std::vector<float> to(6, -1.0f);
  const ReorderParams params = {
      .from = from.data(), .order = order.data(), .to = to.data(), .rows = 2, .cols = 3};
  ASSERT_TRUE(kernels().reorder(params, {}).ok());
  EXPECT_EQ(to, (std::vector<float>{3, 1, 2, 6, 4, 5}));
  for (const float outside : {-1.0f, 3.0f, 1e30f, std::nanf("")}) {
    order[1] = outside;
    EXPECT_EQ(kernels().reorder(params, {}).code(), absl::StatusCode::kInvalidArgument) << outside;
  }
}

TEST_P(RowsTest, ReordersEachExpertsRowsInItsOwnOrder) {
  const std::vector<float> from = {1, 2, 3, 4, 5, 6, 7, 8, 9};  // [3, 3]
  std::vector<float> order = {2, 0, 1, 9, 9, 9, 1, 2, 0};       // [3, 3]
  std::vector<int32_t> begin = {0, 1, 1, 3};                    // no row is the second's
  std::vector<float> to(9, -1.0f);
  const ReorderParams params = {.from = from.data(),
                                .order = order.data(),
                                .to = to.data(),
                                .rows = 3,
                                .cols = 3,
                                .order_begin = begin};
  const auto pool = MakePool(2);
  ASSERT_TRUE(kernels().reorder(params, {pool.get()}).ok());
  EXPECT_EQ(to, (std::vector<float>{3, 1, 2, 5, 6, 4, 8, 9, 7}));
  for (const std::vector<int32_t>& wrong :
       {std::vector<int32_t>{0, 1, 2, 3}, {1, 1, 1, 3}, {0, 1, 1, 2}, {0, 2, 1, 3}}) {
    begin = wrong;
    EXPECT_EQ(kernels().reorder(params, {}).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(RowsTest, QuantisesAsActivationsPrescribe) {
  ActivationMemory memory(5, 96, Forms::kBoth);
  memory.values = RandomFloats(5 * 96, 1);
  const auto pool = MakePool(2);
  ASSERT_TRUE(kernels().quantize({.activations = memory.View()}, {pool.get()}).ok());
  EXPECT_TRUE(SameBits(memory.values, RandomFloats(5 * 96, 1)));
  ExpectQuantsOfValues(memory);
  Activations lacking = memory.View();
  lacking.values = nullptr;
  EXPECT_EQ(kernels().quantize({.activations = lacking}, {}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(RowsTest, CapsSoftly) {
  Aligned<float> actual = RandomFloats(3 * 77, 1, 40.0f);
  actual[5] = 1e30f;
  actual[6] = -1e30f;
  actual[7] = 1e-20f;
  Aligned<float> expected = actual;
  SoftCapParams params = {.values = actual.data(), .rows = 3, .cols = 77, .cap = 30};
  ASSERT_TRUE(kernels().soft_cap(params, {}).ok());
  params.values = expected.data();
  ASSERT_TRUE(ReferenceSoftCap(params, {}).ok());
  // tanh is off by 4 ulp, the division and the product by one each.
  ExpectNear(actual, expected, 30 * 8 * kFloatEpsilon);
  EXPECT_EQ(actual[5], 30.0f);
  EXPECT_EQ(actual[6], -30.0f);
  EXPECT_FLOAT_EQ(actual[7], 1e-20f);
  params.cap = 0;
  EXPECT_EQ(kernels().soft_cap(params, {}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace llm
