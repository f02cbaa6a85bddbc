// A cuBLASLt that has no algorithm, fails, or is not there: own kernels do what it does not, and
// what it said is told.
#include "tests/cuda_on_cpu/dense_on_cuda_fixture.h"

namespace llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(DenseOnCudaTest, AShapeWithoutAnAlgorithmIsAskedForOnce) {
  library().finds_algorithms = false;
  for (int i = 0; i < 3; ++i) ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64));
  EXPECT_EQ(library().num_choices, 1);
  EXPECT_THAT(
      dense_->TakeNotices(),
      ElementsAre("cuBLASLt: algorithm: CUBLAS_STATUS_NOT_SUPPORTED, of bf16, up to 4 rows, "
                  "32 outputs of 64 columns; own kernels do it"));
  EXPECT_EQ(dense_->library().num_refusals(), 1);
  EXPECT_EQ(dense_->library().num_errors(), 0);
  library().finds_algorithms = true;
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64));
  EXPECT_EQ(library().num_products, 0);
  ExpectRight(Problem(WeightFormat::kBF16, 40, 32, 64));
  EXPECT_EQ(library().num_products, 1);
}

TEST_F(DenseOnCudaTest, ARefusedProductIsDoneByOwnKernels) {
  library().refuses_products = true;
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64));
  library().refuses_products = false;
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64));
  EXPECT_EQ(library().num_products, 0);
  EXPECT_EQ(library().num_choices, 1);
  EXPECT_THAT(dense_->TakeNotices(),
              ElementsAre(HasSubstr("product: CUBLAS_STATUS_NOT_SUPPORTED")));
}

constexpr int kWait = 32;  // calls of a shape, after its first error

// Own kernels do what a call failed at, and then a few more of its shape.
TEST_F(DenseOnCudaTest, AnErrorOfACallIsNoRefusal) {
  const Problem problem(WeightFormat::kBF16, 4, 32, 64);
  library().product_error = CUBLAS_STATUS_INVALID_VALUE;
  ExpectRight(problem);
  EXPECT_EQ(dense_->library().num_errors(), 1);
  EXPECT_EQ(dense_->library().num_refusals(), 0);
  EXPECT_THAT(dense_->TakeNotices(),
              ElementsAre(HasSubstr("product: CUBLAS_STATUS_INVALID_VALUE")));
  library().product_error = 0;
  for (int call = 0; call < kWait; ++call) ExpectRight(problem);
  EXPECT_EQ(library().num_products, 0);
  ExpectRight(problem);
  EXPECT_EQ(library().num_products, 1);
  EXPECT_EQ(dense_->library().num_errors(), 1);
}

TEST_F(DenseOnCudaTest, AnErrorThatGoesOnIsToldOnceForAShape) {
  library().choice_error = CUBLAS_STATUS_INVALID_VALUE;
  for (int call = 0; call <= kWait + 1; ++call)
    ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64));
  EXPECT_EQ(dense_->library().num_errors(), 2);
  EXPECT_EQ(library().num_choices, 2);
  ExpectRight(Problem(WeightFormat::kBF16, 40, 32, 64));
  EXPECT_THAT(
      dense_->TakeNotices(),
      ElementsAre(HasSubstr("algorithm: CUBLAS_STATUS_INVALID_VALUE, of bf16, up to 4 rows"),
                  HasSubstr("up to 64 rows")));
}

// A call of the runtime that fails is said, one of the library is done without; the next call is
// right.
TEST_F(DenseOnCudaTest, AnyCallCanFail) {
  gpu().set_capability(8, 9);
  int failed = 0, done_without = 0;
  for (const WeightFormat format : {WeightFormat::kBF16, WeightFormat::kF8_E4M3}) {
    const Problem problem(format, 40, 32, 64);
    Problem unrounded = problem;
    unrounded.rounded = format == WeightFormat::kBF16;
    const auto is_right = [&](const absl::StatusOr<std::vector<float>>& out) {
      return IsNearDoubleSums(problem, *out) || IsNearDoubleSums(unrounded, *out);
    };
    for (int64_t call = 0;; call += 3) {
      gpu().FailCall(-1, cudaSuccess);
      SetUp();  // with no shape known
      gpu().FailCall(call, call % 2 == 0 ? cudaErrorUnknown : cudaErrorMemoryAllocation);
      const absl::StatusOr<std::vector<float>> out = TryRun(problem);
      const std::string failed_call = gpu().failed_call();
      if (failed_call.empty()) break;
      SCOPED_TRACE(testing::Message() << "call " << call << ", " << failed_call);
      if (failed_call.find("cublasLt") == 0) {
        ++done_without;
        EXPECT_TRUE(out.ok()) << out.status();
        EXPECT_EQ(dense_->library().num_errors(), 1);
        EXPECT_EQ(dense_->TakeNotices().size(), 1u);
      }
      if (out.ok()) {
        EXPECT_TRUE(is_right(out));
      } else {
        ++failed;
      }
      gpu().FailCall(-1, cudaSuccess);
      const absl::StatusOr<std::vector<float>> again = TryRun(problem);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_TRUE(is_right(again));
    }
  }
  EXPECT_GT(failed, 5);
  EXPECT_GT(done_without, 5);
}

TEST_F(DenseOnCudaTest, AFailedProductSaysWhat) {
  const Problem problem(WeightFormat::kBF16, 4, 32, 64);
  gpu().FailNext("cublasLtMatmul", cudaErrorUnknown);
  ExpectRight(problem);
  EXPECT_EQ(gpu().failed_call(), "cublasLtMatmul");
  EXPECT_THAT(dense_->TakeNotices(),
              ElementsAre(HasSubstr("cuBLASLt: product: CUBLAS_STATUS_EXECUTION_FAILED, of bf16")));
  EXPECT_THAT(dense_->TakeNotices(), IsEmpty());
}

TEST_F(DenseOnCudaTest, AMissingLibraryOrFunctionIsNamed) {
  const auto create = [&] {
    const size_t bytes = DenseLinear::WorkspaceBytes({.max_rows = 1, .max_cols = 64});
    return DenseLinear::Create(static_cast<std::byte*>(memory_.get()), bytes).status();
  };
  library().name = "libcublasLt.so.12";
  EXPECT_TRUE(create().ok());
  library().name = "libcublasLt.so.11";
  EXPECT_EQ(create().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(create().message()), HasSubstr("libcublasLt.so.13"));
  library().Reset();
  library().suits_driver = false;
  EXPECT_EQ(create().code(), absl::StatusCode::kUnavailable);
  library().Reset();
  library().missing_symbols = {"cublasLtMatmul"};
  EXPECT_EQ(create().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(create().message()),
              HasSubstr("libcublasLt.so.13 has no cublasLtMatmul"));
  EXPECT_THAT(std::string(create().message()), HasSubstr("libcublasLt.so.12 is not here"));
}

TEST_F(DenseOnCudaTest, AWholeLibraryServesWhereTheFirstLacksAFunction) {
  library().missing_symbols = {"cublasLtMatmulAlgoGetHeuristic"};
  library().other_name = "libcublasLt.so.12";
  SetUp();
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64));
  EXPECT_EQ(library().num_products, 1);
}

}  // namespace
}  // namespace llm
