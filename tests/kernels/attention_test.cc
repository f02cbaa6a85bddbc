// attention: a hand-computed case, backends against the reference, and that nothing depends on the
// rest of the batch.
#include "gmock/gmock.h"
#include "tests/kernels/attention_test_util.h"

namespace llm {
namespace {

class AttentionTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, AttentionTest, testing::ValuesIn(AvailableKernels()),
                         BackendName);

constexpr DType kDTypes[] = {DType::kF32,    DType::kF16, DType::kBF16,
                             DType::kF8E4M3, DType::kI8,  DType::kI4};

// Three keys of 16 dimensions; x(i, phase) = sin(0.37 i + phase); expected values by double
// arithmetic in Python.
struct Small {
  static float Wave(size_t i, double phase) {
    return static_cast<float>(std::sin(double{static_cast<float>(i) * 0.37f} + phase));
  }
  Small() : kv(layout.block_bytes(), std::byte{0xff}) {
    float* memory = reinterpret_cast<float*>(kv.data());
    for (size_t i = 0; i < 16; ++i) q[i] = Wave(i, 0);
    for (size_t key = 0; key < 3; ++key) {
      for (size_t d = 0; d < 16; ++d) {
        memory[d * 16 + key] = Wave(16 * key + d, 1);
        memory[256 + key * 16 + d] = Wave(16 * key + d, 2);
      }
    }
  }
  absl::Status Run(const KernelTable& kernels, int window, float soft_cap,
                   const float* sinks = nullptr) {
    Aligned<std::byte> workspace(kernels.attention_workspace_bytes(
        {.max_tokens = 1, .max_sequences = 1, .max_context = 3, .num_heads = 1, .head_dim = 16}));
    return kernels.attention({.q = q.data(),
                              .q_stride = 16,
                              .num_heads = 1,
                              .query_start = query_start,
                              .context_lens = context_lens,
                              .block_table = table.data(),
                              .max_blocks = 1,
                              .kv = {layout, kv.data(), 1},
                              .scale = 0.25f,
                              .window = window,
                              .soft_cap = soft_cap,
                              .sinks = sinks,
                              .output = out.View(),
                              .workspace = workspace.data(),
                              .workspace_bytes = workspace.size()},
                             {});
  }
  void Expect(float d0, float d5, float d15) const {
    EXPECT_NEAR(out.values[0], d0, 1e-6);
    EXPECT_NEAR(out.values[5], d5, 1e-6);
    EXPECT_NEAR(out.values[15], d15, 1e-6);
  }

  KvLayout layout = {DType::kF32, 16, 1, 16};
  Aligned<std::byte> kv;
  Aligned<float> q = Aligned<float>(16);
  std::vector<int32_t> query_start = {0, 1}, context_lens = {3}, table = {0};
  ActivationMemory out = ActivationMemory(1, 16, Forms::kValues);
};

TEST_P(AttentionTest, MatchesValuesComputedElsewhere) {
  Small small;
  ASSERT_TRUE(small.Run(kernels(), 0, 0).ok());
  small.Expect(0.960955493f, -0.2365069f, 0.694315685f);
  ASSERT_TRUE(small.Run(kernels(), 2, 0).ok());
  small.Expect(0.97383977f, -0.133219793f, 0.629508652f);
  ASSERT_TRUE(small.Run(kernels(), 0, 2).ok());
  small.Expect(0.958871249f, -0.274280885f, 0.719465203f);
}

TEST_P(AttentionTest, ASinkTakesItsShareOfTheSoftmaxAndGivesNothing) {
  Small small;
  ASSERT_TRUE(small.Run(kernels(), 0, 0).ok());
  const Aligned<float> without = small.out.values;
  const float far_below = -1000.0f;
  ASSERT_TRUE(small.Run(kernels(), 0, 0, &far_below).ok());
  ExpectNear(small.out.values, without, 1e-6);
  const float far_above = 1000.0f;
  ASSERT_TRUE(small.Run(kernels(), 0, 0, &far_above).ok());
  ExpectNear(small.out.values, Aligned<float>(16, 0.0f), 0);
  // One key of score s and a sink of s: half of the value.
  double score = 0;
  for (size_t d = 0; d < 16; ++d) score += 0.25 * double{small.q[d]} * Small::Wave(32 + d, 1);
  const float sink = static_cast<float>(score);
  ASSERT_TRUE(small.Run(kernels(), 1, 0, &sink).ok());
  EXPECT_NEAR(small.out.values[3], 0.5f * Small::Wave(32 + 3, 2), 1e-6);
}

// Scores have absolute error < head_dim * eps * |q||k| scale, and |q||k| scale < 2 sqrt(head_dim)
// here; weights have that as relative error, sums of n positive terms n * eps more; values are
// below 6.
double Tolerance(const AttentionCase& c, int context) {
  return 6 * (2 * std::pow(c.head_dim, 1.5) + context + 64) * kFloatEpsilon;
}

std::string Name(const AttentionCase& c) {
  return absl::StrCat(DTypeName(c.dtype), " heads ", c.num_heads, "/", c.num_kv_heads, " of ",
                      c.head_dim, " window ", c.window, " cap ", c.soft_cap);
}

std::vector<AttentionCase> Cases() {
  std::vector<AttentionCase> cases;
  for (DType dtype : kDTypes) {
    cases.push_back({.dtype = dtype, .num_heads = 9, .num_kv_heads = 3, .head_dim = 64});
    cases.push_back({.dtype = dtype,
                     .num_heads = 4,
                     .num_kv_heads = 1,
                     .head_dim = 256,
                     .window = 30,
                     .block_size = 32});
    cases.push_back({.dtype = dtype,
                     .num_heads = 2,
                     .num_kv_heads = 2,
                     .head_dim = dtype == DType::kI4 ? 96 : 48,
                     .window = 600,
                     .soft_cap = 3,
                     .block_size = 64});
  }
  cases.push_back({.dtype = DType::kI4, .num_heads = 16, .num_kv_heads = 1, .head_dim = 576});
  cases.push_back({.dtype = DType::kF8E4M3, .head_dim = 64, .window = 30, .constant_scales = true});
  cases.push_back({.dtype = DType::kF8E4M3, .num_heads = 12, .constant_scales = true});
  cases.push_back({.num_heads = 16, .num_kv_heads = 1, .head_dim = 128});
  cases.push_back({.num_heads = 16, .num_kv_heads = 1, .head_dim = 576});
  cases.push_back({.num_heads = 8, .num_kv_heads = 2, .window = 30, .sinks = true});
  cases.push_back({.num_heads = 4, .num_kv_heads = 2, .head_dim = 32, .sinks = true});
  cases.push_back({.num_heads = 3, .num_kv_heads = 3, .head_dim = 16, .window = 1});
  cases.push_back({.num_heads = 1, .num_kv_heads = 1, .head_dim = 512, .window = 17});
  return cases;
}

TEST_P(AttentionTest, EqualsTheReference) {
  for (const AttentionCase& c : Cases()) {
    SCOPED_TRACE(Name(c));
    AttentionData data(c, {37, 700, 1, 16, 1100});
    const std::vector<AttentionData::Chunk> chunks = {{0, 37, 37}, {1, 9, 700},  {2, 1, 1},
                                                      {3, 5, 16},  {4, 1, 1025}, {4, 2, 514}};
    const ActivationMemory actual = data.Run(kernels(), chunks);
    const ActivationMemory expected = data.Run(ReferenceKernels(), chunks);
    ExpectNear(actual.values, expected.values, Tolerance(c, 1100));
  }
}

TEST_P(AttentionTest, AQueryAloneEqualsTheSameQueryInAnyChunkBatchAndThreadCount) {
  for (const AttentionCase& c : Cases()) {
    SCOPED_TRACE(Name(c));
    constexpr int kContext = 530;
    constexpr int kFirst = 480;  // queries below are kFirst .. kContext - 1: they cross a split
    AttentionData data(c, {kContext, 90});
    const ActivationMemory whole = data.Run(kernels(), {{0, kContext - kFirst, kContext}});
    const size_t token = static_cast<size_t>(data.token_size());
    for (int position = kFirst; position < kContext; position += 13) {
      const ActivationMemory alone = data.Run(kernels(), {{0, 1, position + 1}});
      ASSERT_EQ(std::memcmp(alone.Row(0), whole.Row(position - kFirst), token * 4), 0) << position;
    }
    for (int num_threads : {1, 3}) {
      const ActivationMemory mixed = data.Run(
          kernels(), {{1, 40, 70}, {0, 20, 500}, {1, 1, 90}, {0, 29, 529}, {0, 1, kContext}},
          Forms::kValues, num_threads);
      EXPECT_EQ(std::memcmp(mixed.Row(40), whole.Row(0), 20 * token * 4), 0) << num_threads;
      EXPECT_EQ(std::memcmp(mixed.Row(61), whole.Row(20), 30 * token * 4), 0) << num_threads;
    }
  }
}

TEST_P(AttentionTest, LongDecodeIsTheSameForEveryThreadCount) {
  AttentionData data({.dtype = DType::kF16, .num_heads = 4, .num_kv_heads = 1}, {3000});
  const ActivationMemory one = data.Run(kernels(), {{0, 1, 3000}}, Forms::kBoth, 1);
  for (int num_threads : {2, 3}) {
    ExpectSame(data.Run(kernels(), {{0, 1, 3000}}, Forms::kBoth, num_threads), one);
  }
  ExpectNear(one.values, data.Run(ReferenceKernels(), {{0, 1, 3000}}).values,
             Tolerance({.head_dim = 64}, 3000));
}

TEST_P(AttentionTest, AKeyBeforeTheWindowOrAfterTheQueryIsNotMultiplied) {
  constexpr int kKey = 37;
  constexpr int kWindow = 20;
  for (DType dtype : kDTypes) {
    SCOPED_TRACE(DTypeName(dtype));
    AttentionData data({.dtype = dtype, .num_heads = 3, .num_kv_heads = 1, .window = kWindow},
                       {90});
    const ActivationMemory clean = data.Run(kernels(), {{0, 90, 90}});
    data.PoisonToken(0, kKey);
    for (int num_threads : {1, 3}) {
      const ActivationMemory out = data.Run(kernels(), {{0, 90, 90}}, Forms::kValues, num_threads);
      const size_t row_bytes = static_cast<size_t>(data.token_size()) * sizeof(float);
      for (int row = 0; row < 90; ++row) {
        if (row >= kKey && row < kKey + kWindow) {
          EXPECT_TRUE(std::isnan(out.Row(row)[0])) << row;
        } else {
          EXPECT_EQ(std::memcmp(out.Row(row), clean.Row(row), row_bytes), 0) << row;
        }
      }
    }
  }
}

// Also where the last dimensions fill half of what is multiplied at once.
TEST_P(AttentionTest, ANanInOneDimensionOfAValueReachesThatOneOfRowsThatSeeIt) {
  constexpr int kKey = 37;
  constexpr int kDim = 41;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
    SCOPED_TRACE(DTypeName(dtype));
    const AttentionCase c = {.dtype = dtype,
                             .num_heads = 3,
                             .num_kv_heads = 1,
                             .head_dim = 48,
                             .window = 20,
                             .constant_scales = dtype == DType::kF8E4M3};
    AttentionData data(c, {70});
    const ActivationMemory clean = data.Run(kernels(), {{0, 70, 70}});
    data.PoisonValue(0, kKey, kDim);
    ActivationMemory out = data.Run(kernels(), {{0, 70, 70}});
    for (int row = kKey; row < kKey + c.window; ++row) {
      for (int head = 0; head < c.num_heads; ++head) {
        const size_t at = static_cast<size_t>((row * c.num_heads + head) * c.head_dim + kDim);
        EXPECT_TRUE(std::isnan(out.values[at])) << row;
        out.values[at] = clean.values[at];
      }
    }
    EXPECT_TRUE(SameBits(out.values, clean.values));
  }
}

TEST_P(AttentionTest, ScoresFarApartNeitherOverflowNorVanish) {
  const AttentionCase c = {.num_heads = 4, .num_kv_heads = 2, .head_dim = 64};
  AttentionData data(c, {1600});
  for (float& x : data.queries(0)) x *= 200.0f;  // scores are hundreds apart
  const std::vector<AttentionData::Chunk> chunks = {{0, 40, 1600}};
  const ActivationMemory expected = data.Run(ReferenceKernels(), chunks);
  for (int num_threads : {1, 3}) {
    const ActivationMemory actual = data.Run(kernels(), chunks, Forms::kValues, num_threads);
    ExpectNear(actual.values, expected.values, 200 * Tolerance(c, 1600));
  }
}

TEST_P(AttentionTest, QuantisesItsOutputExactly) {
  for (int head_dim : {16, 48, 64}) {
    const AttentionCase c = {.num_heads = 4, .num_kv_heads = 2, .head_dim = head_dim};
    AttentionData data(c, {600, 20});
    const std::vector<AttentionData::Chunk> chunks = {{0, 3, 600}, {1, 7, 20}, {0, 1, 513}};
    for (int num_threads : {1, 3}) {
      const ActivationMemory both = data.Run(kernels(), chunks, Forms::kBoth, num_threads);
      ExpectQuantsOfValues(both);
      EXPECT_TRUE(SameBits(data.Run(kernels(), chunks).values, both.values));
      const ActivationMemory quants = data.Run(kernels(), chunks, Forms::kQuants, num_threads);
      EXPECT_TRUE(SameBits(quants.quants, both.quants));
      EXPECT_TRUE(SameBits(quants.scales, both.scales));
    }
  }
}

TEST_P(AttentionTest, ANanThatAQueryMaySeeReachesItsOutputOnly) {
  AttentionData data({.num_heads = 2, .num_kv_heads = 1, .head_dim = 32}, {40});
  data.queries(0)[static_cast<size_t>(20 * data.token_size()) + 3] = std::nanf("");
  const ActivationMemory out = data.Run(kernels(), {{0, 40, 40}}, Forms::kBoth);
  for (int64_t row = 0; row < 40; ++row) {
    EXPECT_EQ(std::isnan(out.Row(row)[0]), row == 20) << row;
    EXPECT_FALSE(std::isnan(out.Row(row)[32])) << row;
  }
}

TEST_P(AttentionTest, RefusesBlocksOutsideTheLayerAndAShortWorkspace) {
  Small small;
  small.table[0] = 1;
  absl::Status status = small.Run(kernels(), 0, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), testing::HasSubstr("block 0 of sequence 0 is 1"));
  small.table[0] = 0;
  small.context_lens[0] = 17;
  EXPECT_EQ(small.Run(kernels(), 0, 0).code(), absl::StatusCode::kInvalidArgument);
  small.context_lens[0] = 0;
  EXPECT_EQ(small.Run(kernels(), 0, 0).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace llm
