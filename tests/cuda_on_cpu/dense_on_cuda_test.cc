// Linear layers by cuBLASLt against double sums of what it is given, in two orders of additions;
// what it has not, or not yet, is done by own kernels.
#include <cmath>
#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/quant/f8_e4m3.h"
#include "src/tensor/float_convert.h"
#include "tests/cuda_on_cpu/device_copies.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/libraries.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {
namespace {

using cuda_on_cpu::Libraries;
using testing::HasSubstr;

constexpr float kUntouched = -12345.0f;
constexpr int64_t kGap = 4;  // floats between rows: 16 bytes, as the library wants it

// Of a block's codes; both formats have them alike.
void GiveRowsOneScale(RandomWeight* weight) {
  const int64_t row_bytes = RowBytes(GetWeightFormat(weight->format), weight->cols);
  for (size_t i = 0; i < weight->blocks.size(); i += sizeof(F8_E4M3)) {
    const size_t row = i / static_cast<size_t>(row_bytes) * static_cast<size_t>(row_bytes);
    F8_E4M3 block;
    std::memcpy(&block, &weight->blocks[i], sizeof(block));
    std::memcpy(&block.scale, &weight->blocks[row], sizeof(block.scale));
    for (uint8_t& code : block.codes) code = (code & 0x7f) == 0x7f ? uint8_t{0} : code;  // NaN
    std::memcpy(&weight->blocks[i], &block, sizeof(block));
  }
  GetWeightFormat(weight->format)
      .decode(weight->blocks.data(), weight->rows * weight->cols, weight->decoded.data());
}

struct Problem {
  Problem(WeightFormat format, int64_t rows, int64_t outputs, int64_t cols, uint32_t seed = 61)
      : random(seed),
        weight(MakeRandomWeight(format, outputs, cols, &random)),
        activations(rows, cols, &random),
        bias(static_cast<size_t>(outputs)) {
    for (float& x : bias) x = std::normal_distribution<float>()(random);
    row_scales = format == WeightFormat::kF8_E4M3 || format == WeightFormat::kQ8_F32;
    if (row_scales) GiveRowsOneScale(&weight);
  }
  // Row `row` as the library is given it.
  std::vector<float> Given(int64_t row) const {
    const float* x = &activations.values[static_cast<size_t>(row * weight.cols)];
    std::vector<float> given(x, x + weight.cols);
    float amax = 0;
    for (const float value : given) amax = std::max(amax, std::abs(value));
    for (float& value : given) {
      switch (weight.format) {
        case WeightFormat::kBF16:
          value = BF16ToF32(F32ToBF16(value));
          break;
        case WeightFormat::kF16:
          value = F16ToF32(F32ToF16(value));
          break;
        case WeightFormat::kF8_E4M3:
          value = F8E4M3ToF32(F32ToF8E4M3(value * (448 / amax))) * (amax / 448);
          break;
        default:
          value = std::nearbyint(value * (127 / amax)) * (amax / 127);
      }
    }
    return given;
  }

  std::mt19937 random;
  RandomWeight weight;
  RandomActivations activations;
  std::vector<float> bias;
  bool row_scales = false;
  bool with_bias = true;
  bool round = true;  // activations may be rounded
  int64_t gap = kGap;
};

class DenseOnCudaTest : public GpuTest {
 protected:
  DenseOnCudaTest() { Libraries::Get().Reset(); }
  ~DenseOnCudaTest() override { Libraries::Get().Reset(); }
  void SetUp() override {
    const size_t bytes = DenseLinear::WorkspaceBytes({.max_rows = 600, .max_cols = 1024});
    memory_ = std::move(AllocateDevice(bytes, "library")).value();
    auto dense = DenseLinear::Create(static_cast<std::byte*>(memory_.get()), bytes);
    ASSERT_TRUE(dense.ok()) << dense.status();
    dense_ = *std::move(dense);
  }

  static Libraries& library() { return Libraries::Get(); }

  absl::StatusOr<std::vector<float>> TryRun(const Problem& p) {
    const int64_t rows = p.activations.rows;
    const int64_t stride = p.weight.rows + p.gap;
    std::vector<float> out(static_cast<size_t>(rows * stride), kUntouched);
    DeviceCopies copies;
    LinearOutput output;
    output.weight = {p.weight.format, p.weight.rows, p.weight.cols,
                     reinterpret_cast<const std::byte*>(
                         copies.In(p.weight.blocks.data(), p.weight.blocks.size())),
                     p.row_scales};
    if (p.with_bias) output.bias = copies.In(p.bias.data(), p.bias.size());
    output.out = copies.InOut(out.data(), out.size() - static_cast<size_t>(p.gap));
    output.out_stride = stride;
    const LinearParams params = {.activations = copies.InOut(p.activations.Values(0, rows)),
                                 .outputs = absl::MakeConstSpan(&output, 1),
                                 .round_to_bf16 = p.round};
    const absl::Status status = copies.Finish(
        cuda::Linear(params, {copies.stream().stream, copies.stream().uploads, dense_.get()}));
    if (!status.ok()) return status;
    return out;
  }
  void ExpectRight(const Problem& p) {
    const absl::StatusOr<std::vector<float>> out = TryRun(p);
    ASSERT_TRUE(out.ok()) << out.status() << gpu().fault();
    ExpectNearDoubleSums(p, *out);
  }
  // As tests/kernels/linear_test.cc derives it.
  static void ExpectNearDoubleSums(const Problem& p, const std::vector<float>& out) {
    const int64_t stride = p.weight.rows + p.gap;
    const double eps = std::numeric_limits<float>::epsilon();
    for (int64_t row = 0; row < p.activations.rows; ++row) {
      const std::vector<float> x = p.Given(row);
      for (int64_t output = 0; output < stride; ++output) {
        const float actual = out[static_cast<size_t>(row * stride + output)];
        if (output >= p.weight.rows) {
          ASSERT_EQ(actual, kUntouched) << "row " << row << " output " << output;
          continue;
        }
        double sum = 0, squares = 0, largest = 0;
        for (size_t k = 0; k < x.size(); ++k) {
          const double w = double{p.weight.decoded[static_cast<size_t>(output) * x.size() + k]};
          sum += double{x[k]} * w;
          squares += double{x[k]} * double{x[k]};
          largest = std::max(largest, std::abs(w));
        }
        const double bias = p.with_bias ? double{p.bias[static_cast<size_t>(output)]} : 0;
        const double tolerance =
            4 * eps * std::sqrt(static_cast<double>(x.size()) * squares) * largest +
            4 * eps * (std::abs(sum) + std::abs(bias));
        ASSERT_NEAR(double{actual}, sum + bias, tolerance) << "row " << row << " output " << output;
      }
    }
  }

  DeviceMemoryOwner memory_;
  std::unique_ptr<DenseLinear> dense_;
};

class DenseTypeTest : public DenseOnCudaTest, public testing::WithParamInterface<WeightFormat> {};

TEST_P(DenseTypeTest, EqualsDoubleSumsInEveryOrder) {
  gpu().set_capability(8, 9);
  const bool codes = GetParam() == WeightFormat::kF8_E4M3;
  const bool integers = GetParam() == WeightFormat::kQ8_F32;
  for (const auto order : {Libraries::Order::kAscending, Libraries::Order::kHalves}) {
    library().order = order;
    for (const auto& [rows, outputs, cols] :
         {std::tuple{1, 16, 64}, {3, 48, 192}, {33, 80, 128}, {70, 32, 320}}) {
      const int64_t many = integers ? 511 + rows : codes ? 31 + rows : rows;
      SCOPED_TRACE(testing::Message() << many << " rows, " << outputs << " outputs, " << cols);
      Problem problem(GetParam(), many, outputs, cols);
      problem.with_bias = rows != 3;
      const int64_t before = library().num_products;
      ExpectRight(problem);
      EXPECT_EQ(library().num_products, before + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DenseTypeTest,
                         testing::Values(WeightFormat::kBF16, WeightFormat::kF16,
                                         WeightFormat::kF8_E4M3, WeightFormat::kQ8_F32),
                         [](const testing::TestParamInfo<WeightFormat>& param_info) {
                           return std::string(GetWeightFormat(param_info.param).name);
                         });

TEST_F(DenseOnCudaTest, AnAlgorithmIsChosenOnceForAShape) {
  for (const int64_t rows : {5, 7, 8, 5}) ExpectRight(Problem(WeightFormat::kBF16, rows, 32, 64));
  EXPECT_EQ(library().num_choices, 1);
  ExpectRight(Problem(WeightFormat::kBF16, 9, 32, 64));
  EXPECT_EQ(library().num_choices, 2);
  ExpectRight(Problem(WeightFormat::kF16, 9, 32, 64));
  EXPECT_EQ(library().num_choices, 3);
  // Neither's algorithm is another shape's.
  ExpectRight(Problem(WeightFormat::kBF16, 9, 48, 64));
  ExpectRight(Problem(WeightFormat::kBF16, 9, 32, 128));
  EXPECT_EQ(library().num_choices, 5);
  EXPECT_EQ(library().num_products, 8);
}

// One activation, three outputs: rounded once.
TEST_F(DenseOnCudaTest, OutputsOfOneCallShareTheRoundedRows) {
  const Problem p(WeightFormat::kBF16, 4, 32, 64);
  std::vector<float> out(3 * 4 * 32);
  DeviceCopies copies;
  const auto* weight =
      reinterpret_cast<const std::byte*>(copies.In(p.weight.blocks.data(), p.weight.blocks.size()));
  float* results = copies.InOut(out.data(), out.size());
  LinearOutput outputs[3];
  for (LinearOutput& output : outputs) {
    output = {{p.weight.format, 32, 64, weight}, nullptr, results, 32};
    results += 4 * 32;
  }
  const LinearParams params = {.activations = copies.InOut(p.activations.Values(0, 4)),
                               .outputs = outputs,
                               .round_to_bf16 = true};
  const CudaStream stream = {copies.stream().stream, copies.stream().uploads, dense_.get()};
  const int64_t before = gpu().num_launches();
  ASSERT_TRUE(copies.Finish(cuda::Linear(params, stream)).ok());
  EXPECT_EQ(gpu().num_launches(), before + 1);
  EXPECT_EQ(library().num_products, 3);
  EXPECT_EQ(std::memcmp(out.data(), &out[4 * 32], 4 * 32 * sizeof(float)), 0);
}

TEST_F(DenseOnCudaTest, ARowOfAnotherCallIsNotTakenForThisOnes) {
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64, 61));
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64, 67));
  EXPECT_EQ(library().num_products, 2);
}

// A weight that begins 16 bytes behind an allocation's begin.
TEST_F(DenseOnCudaTest, LessAlignmentThanAnAllocationsWillDo) {
  const Problem p(WeightFormat::kBF16, 4, 32, 64);
  std::vector<uint8_t> shifted(16);
  shifted.insert(shifted.end(), p.weight.blocks.begin(), p.weight.blocks.end());
  std::vector<float> out(4 * 32);
  DeviceCopies copies;
  const auto* weight =
      reinterpret_cast<const std::byte*>(copies.In(shifted.data(), shifted.size())) + 16;
  const LinearOutput output = {
      {p.weight.format, 32, 64, weight}, nullptr, copies.InOut(out.data(), out.size()), 32};
  const LinearParams params = {.activations = copies.InOut(p.activations.Values(0, 4)),
                               .outputs = absl::MakeConstSpan(&output, 1),
                               .round_to_bf16 = true};
  const CudaStream stream = {copies.stream().stream, copies.stream().uploads, dense_.get()};
  ASSERT_TRUE(copies.Finish(cuda::Linear(params, stream)).ok());
  EXPECT_EQ(library().num_products, 1);
}

TEST_F(DenseOnCudaTest, WhatIsNotAlignedIsLeftToOwnKernels) {
  Problem gap(WeightFormat::kBF16, 4, 32, 64);
  gap.gap = 3;
  ExpectRight(gap);
  ExpectRight(Problem(WeightFormat::kBF16, 4, 30, 64));
  ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 68));
  EXPECT_EQ(library().num_choices, 0);
}

TEST_F(DenseOnCudaTest, ActivationsThatStayInF32AreLeftToOwnKernels) {
  Problem problem(WeightFormat::kBF16, 4, 32, 64);
  problem.round = false;
  ASSERT_TRUE(TryRun(problem).ok());
  EXPECT_EQ(library().num_choices, 0);
}

TEST_F(DenseOnCudaTest, FewRowsAndBlocksOfTheirOwnScaleKeepTheirKernels) {
  gpu().set_capability(8, 9);
  ASSERT_TRUE(TryRun(Problem(WeightFormat::kF8_E4M3, 31, 32, 64)).ok());
  Problem blocks(WeightFormat::kF8_E4M3, 32, 32, 128);
  blocks.row_scales = false;
  ASSERT_TRUE(TryRun(blocks).ok());
  EXPECT_EQ(library().num_choices, 0);
}

TEST_F(DenseOnCudaTest, DevicesWithoutFp8KeepTheirKernels) {
  ASSERT_TRUE(TryRun(Problem(WeightFormat::kF8_E4M3, 32, 32, 64)).ok());
  EXPECT_EQ(library().num_choices, 1);
  EXPECT_EQ(library().num_products, 0);
}

TEST_F(DenseOnCudaTest, AShapeWithoutAnAlgorithmIsAskedForOnce) {
  library().finds_algorithms = false;
  for (int i = 0; i < 3; ++i) ExpectRight(Problem(WeightFormat::kBF16, 4, 32, 64));
  EXPECT_EQ(library().num_choices, 1);
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
}

// Whatever fails is said, or does not matter; the next call is right.
TEST_F(DenseOnCudaTest, EveryCallCanFail) {
  gpu().set_capability(8, 9);
  int failed = 0;
  for (const WeightFormat format : {WeightFormat::kBF16, WeightFormat::kF8_E4M3}) {
    const Problem problem(format, 40, 32, 64);
    for (int64_t call = 0;; call += 3) {
      gpu().FailCall(-1, cudaSuccess);
      SetUp();  // with no shape known
      gpu().FailCall(call, call % 2 == 0 ? cudaErrorUnknown : cudaErrorMemoryAllocation);
      const absl::StatusOr<std::vector<float>> out = TryRun(problem);
      if (gpu().failed_call().empty()) break;
      SCOPED_TRACE(testing::Message() << "call " << call << ", " << gpu().failed_call());
      if (!out.ok()) ++failed;
      // An own kernel may have done it, with activations of its own.
      if (out.ok() && format == WeightFormat::kBF16) ExpectNearDoubleSums(problem, *out);
      gpu().FailCall(-1, cudaSuccess);
      const absl::StatusOr<std::vector<float>> again = TryRun(problem);
      ASSERT_TRUE(again.ok()) << again.status();
      if (format == WeightFormat::kBF16) ExpectNearDoubleSums(problem, *again);
    }
  }
  EXPECT_GT(failed, 20);
}

TEST_F(DenseOnCudaTest, AFailedProductSaysWhat) {
  const Problem problem(WeightFormat::kBF16, 4, 32, 64);
  ExpectRight(problem);
  gpu().FailCall(0, cudaErrorUnknown);
  absl::Status status = TryRun(problem).status();
  for (int64_t call = 1; gpu().failed_call() != "cublasLtMatmul"; ++call) {
    ASSERT_FALSE(gpu().failed_call().empty());
    gpu().FailCall(call, cudaErrorUnknown);
    status = TryRun(problem).status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "cuBLASLt: product: CUBLAS_STATUS_EXECUTION_FAILED");
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
}

// A row with an infinite value has no results, and leaves those of others alone.
TEST_F(DenseOnCudaTest, WhatIsNotFiniteStaysInItsRow) {
  gpu().set_capability(8, 9);
  for (const WeightFormat format :
       {WeightFormat::kBF16, WeightFormat::kF16, WeightFormat::kF8_E4M3}) {
    Problem problem(format, 40, 32, 64);
    const absl::StatusOr<std::vector<float>> before = TryRun(problem);
    ASSERT_TRUE(before.ok()) << before.status();
    problem.activations.values[64 * 7 + 3] = std::numeric_limits<float>::infinity();
    const absl::StatusOr<std::vector<float>> after = TryRun(problem);
    ASSERT_TRUE(after.ok()) << after.status();
    for (size_t i = 0; i < after->size(); ++i) {
      const size_t row = i / 36;
      if (i % 36 >= 32) continue;
      if (row == 7) {
        EXPECT_FALSE(std::isfinite((*after)[i]));
      } else {
        EXPECT_EQ((*after)[i], (*before)[i]);
      }
    }
  }
}

}  // namespace
}  // namespace llm
