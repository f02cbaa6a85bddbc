// Mixture of experts: the choice of experts by hand, rows against the reference, expert_linear
// against linear.
#include <limits>
#include <numeric>

#include "kernels/checks.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/linear_fixture.h"

namespace llm {
namespace {

class MoeTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, MoeTest, testing::ValuesIn(AvailableKernels()), BackendName);

struct Routed {
  std::vector<float> weights;
  std::vector<int32_t> rows;
  std::vector<int32_t> row_tokens;
  std::vector<int32_t> begin;

  // The experts of a token, the best first.
  std::vector<int> Experts(int64_t token, int per_token) const {
    std::vector<int> experts;
    for (int j = 0; j < per_token; ++j) {
      const int32_t row = rows[static_cast<size_t>(token * per_token + j)];
      EXPECT_EQ(row_tokens[static_cast<size_t>(row)], token);
      int e = 0;
      while (begin[static_cast<size_t>(e) + 1] <= row) ++e;
      experts.push_back(e);
    }
    return experts;
  }
};

Routed Route(const KernelTable& kernels, const RouterRule& rule, const std::vector<float>& logits,
             const float* bias = nullptr, int num_threads = 1) {
  const int64_t tokens = static_cast<int64_t>(logits.size()) / rule.num_experts;
  const size_t rows = static_cast<size_t>(tokens * rule.experts_per_token);
  Routed r = {std::vector<float>(rows), std::vector<int32_t>(rows), std::vector<int32_t>(rows),
              std::vector<int32_t>(static_cast<size_t>(rule.num_experts) + 1)};
  const auto pool = MakePool(num_threads);
  const absl::Status status = kernels.moe_route({.rule = rule,
                                                 .logits = logits.data(),
                                                 .num_tokens = tokens,
                                                 .selection_bias = bias,
                                                 .weights = r.weights.data(),
                                                 .rows = r.rows.data(),
                                                 .row_tokens = r.row_tokens.data(),
                                                 .expert_begin = r.begin.data()},
                                                {pool.get()});
  EXPECT_TRUE(status.ok()) << status;
  return r;
}

using Ints = std::vector<int>;

TEST_P(MoeTest, RoutesToTheBestAndTiesToTheLowestIndex) {
  const RouterRule rule = {.num_experts = 4, .experts_per_token = 2, .normalize = true};
  const Routed r = Route(kernels(), rule, {1, 3, 3, 2, /**/ 0, 0, 0, 0, /**/ 5, 1, 1, 6});
  EXPECT_EQ(r.Experts(0, 2), Ints({1, 2}));
  EXPECT_EQ(r.Experts(1, 2), Ints({0, 1}));
  EXPECT_EQ(r.Experts(2, 2), Ints({3, 0}));
  EXPECT_FLOAT_EQ(r.weights[0], 0.5f);
  EXPECT_FLOAT_EQ(r.weights[4], 0.7310586f);  // 1 / (1 + e^-1)
  EXPECT_EQ(r.begin, (std::vector<int32_t>{0, 2, 4, 5, 6}));
  EXPECT_EQ(r.row_tokens, (std::vector<int32_t>{1, 2, 0, 1, 0, 2}));
}

TEST_P(MoeTest, WeightsAreSharesOfAllExpertsUnlessNormalised) {
  const RouterRule rule = {.num_experts = 2, .experts_per_token = 1, .scale = 2.5f};
  EXPECT_FLOAT_EQ(Route(kernels(), rule, {1, 0}).weights[0], 2.5f * 0.7310586f);
}

TEST_P(MoeTest, ABiasMovesTheChoiceButNotTheWeight) {
  const RouterRule rule = {
      .num_experts = 3, .experts_per_token = 1, .score = RouterScore::kSigmoid};
  const float bias[] = {0, 0, 1};
  const Routed r = Route(kernels(), rule, {1, 0, 0}, bias);
  EXPECT_EQ(r.Experts(0, 1), Ints({2}));
  EXPECT_FLOAT_EQ(r.weights[0], 0.5f);
}

TEST_P(MoeTest, OnlyTheBestGroupsAreChosenFrom) {
  // Groups {0, 1}, {2, 3}, {4, 5}: the best single expert is in the first, the best pair in the
  // second.
  const std::vector<float> logits = {4, -9, 2, 2, 1, 1};
  RouterRule rule = {.num_experts = 6, .experts_per_token = 2, .num_groups = 3};
  rule.groups_per_token = 1;
  EXPECT_EQ(Route(kernels(), rule, logits).Experts(0, 2), Ints({0, 1}));
  rule.score = RouterScore::kSigmoid;
  EXPECT_EQ(Route(kernels(), rule, logits).Experts(0, 2), Ints({2, 3}));
}

TEST_P(MoeTest, LogitsThatAreNotFiniteStillGiveExpertsThatExist) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const RouterRule rule = {.num_experts = 4, .experts_per_token = 4};
  const Routed r = Route(kernels(), rule, {nan, nan, nan, nan, /**/ infinity, 0, -infinity, nan});
  for (int64_t token : {0, 1}) {
    Ints experts = r.Experts(token, 4);
    std::sort(experts.begin(), experts.end());
    EXPECT_EQ(experts, Ints({0, 1, 2, 3}));
  }
}

TEST_P(MoeTest, RoutesEachTokenAsAlone) {
  const RouterRule rule = {.num_experts = 60, .experts_per_token = 4, .normalize = true};
  const Aligned<float> random = RandomFloats(17 * 60, 3);
  const std::vector<float> logits(random.begin(), random.end());
  const Routed all = Route(kernels(), rule, logits, nullptr, 3);
  for (int64_t t = 0; t < 17; ++t) {
    const Routed one =
        Route(kernels(), rule, {logits.begin() + t * 60, logits.begin() + t * 60 + 60});
    EXPECT_EQ(all.Experts(t, 4), one.Experts(0, 4));
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(all.weights[static_cast<size_t>(t) * 4 + j], one.weights[j]);
    }
  }
}

// More pairs than one block of the device sorts, and many experts without any.
TEST_P(MoeTest, SortsThousandsOfPairsAsTheReferenceDoes) {
  constexpr int kExperts = 300;
  const RouterRule rule = {.num_experts = kExperts, .experts_per_token = 4, .normalize = true};
  std::vector<float> logits(1100 * kExperts, -5.0f);
  for (size_t t = 0; t < 1100; ++t) {
    for (size_t j = 0; j < 4; ++j) {
      logits[t * kExperts + (t * t + 37 * j) % 97] = static_cast<float>(j);
    }
  }
  const Routed actual = Route(kernels(), rule, logits);
  const Routed expected = Route(ReferenceKernels(), rule, logits);
  EXPECT_EQ(actual.begin, expected.begin);
  EXPECT_EQ(actual.row_tokens, expected.row_tokens);
  EXPECT_EQ(actual.rows, expected.rows);
}

TEST_P(MoeTest, RefusesRulesThatCannotBe) {
  float memory[8] = {};
  int32_t ints[8] = {};
  MoeRouteParams params = {.rule = {},
                           .logits = memory,
                           .num_tokens = 1,
                           .weights = memory,
                           .rows = ints,
                           .row_tokens = ints,
                           .expert_begin = ints};
  const std::vector<RouterRule> bad = {
      {.num_experts = 0, .experts_per_token = 1},
      {.num_experts = 4, .experts_per_token = 5},
      {.num_experts = 4, .experts_per_token = 1, .num_groups = 3},
      {.num_experts = 4, .experts_per_token = 3, .num_groups = 2, .groups_per_token = 1}};
  for (const RouterRule& rule : bad) {
    params.rule = rule;
    EXPECT_EQ(kernels().moe_route(params, {}).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(MoeTest, CombinesInRoutingOrderAsTheReferenceDoes) {
  constexpr int64_t kCols = 83;
  const Aligned<float> input = RandomFloats(12 * kCols, 1);
  const Aligned<float> weights = RandomFloats(12, 2);
  Aligned<float> shared = RandomFloats(4 * kCols, 3);
  std::vector<int32_t> rows(12);
  std::iota(rows.rbegin(), rows.rend(), 0);
  MoeCombineParams params = {.input = input.data(),
                             .num_rows = 12,
                             .weights = weights.data(),
                             .rows = rows.data(),
                             .experts_per_token = 3,
                             .shared = shared.data(),
                             .num_tokens = 4,
                             .cols = kCols};
  Aligned<float> expected(shared.size());
  params.out = expected.data();
  ASSERT_TRUE(ReferenceMoeCombine(params, {}).ok());
  Aligned<float> actual(shared.size());
  params.out = actual.data();
  ASSERT_TRUE(kernels().moe_combine(params, {}).ok());
  ExpectNear(actual, expected, 64 * kFloatEpsilon);  // four terms of magnitude below 16
  params.out = shared.data();                        // in place, and on threads: the same bits
  const auto pool = MakePool(3);
  ASSERT_TRUE(kernels().moe_combine(params, {pool.get()}).ok());
  EXPECT_TRUE(SameBits(shared, actual));
  rows[5] = 12;
  EXPECT_EQ(kernels().moe_combine(params, {}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(MoeTest, GathersEveryForm) {
  std::mt19937 random(5);
  const RandomActivations source(3, 64, &random);
  Activations input = source.Values(0, 3);
  const Activations quants = source.Quants(0, 3);
  input.quants = quants.quants;
  input.scales = quants.scales;
  input.sums = quants.sums;
  const std::vector<int32_t> tokens = {2, 0, 2, 1};
  ActivationMemory out(4, 64, Forms::kBoth);
  MoeGatherParams params = {.input = input, .row_tokens = tokens, .output = out.View()};
  ASSERT_TRUE(kernels().moe_gather(params, {}).ok());
  for (size_t row = 0; row < tokens.size(); ++row) {
    const auto token = static_cast<size_t>(tokens[row]);
    for (size_t c = 0; c < 64; ++c) {
      EXPECT_EQ(out.values[row * 64 + c], source.values[token * 64 + c]);
      EXPECT_EQ(out.quants[row * 64 + c], source.quants[token * 64 + c]);
      EXPECT_EQ(out.scales[row * 2 + c / 32], source.scales[token * 2 + c / 32]);
      EXPECT_EQ(out.sums[row * 4 + c / 16], source.sums[token * 4 + c / 16]);
    }
  }
  params.input.rows = 2;
  EXPECT_EQ(kernels().moe_gather(params, {}).code(), absl::StatusCode::kInvalidArgument);
}

// Expert 1 has no rows, expert 3 more than one task of rows.
const std::vector<int32_t> kBegin = {0, 3, 3, 4, 45};
constexpr int64_t kNumExperts = 4;
constexpr int64_t kOutputs = 48;

class ExpertLinearTest
    : public testing::TestWithParam<std::tuple<const KernelTable*, WeightFormat>> {};

TEST_P(ExpertLinearTest, GivesTheBitsOfLinearWithEachExpertAlone) {
  const auto [table, format] = GetParam();
  const int64_t cols = GetWeightFormat(format).block_size > 32 ? 256 : 96;
  std::mt19937 random(7);
  const RandomWeight weight = MakeRandomWeight(format, kNumExperts * kOutputs, cols, &random);
  const RandomActivations rows(45, cols, &random);
  const Aligned<float> bias = RandomFloats(kNumExperts * kOutputs, 4);
  const auto packed = Pack(*table, weight);
  // Both ways of reading the activations: integer formats int8 ones, BF16 rounded ones.
  for (const bool reduced : {false, true}) {
    const bool quants = reduced && ReadsQuants(format);
    const Activations a = quants ? rows.Quants(0, 45) : rows.Values(0, 45);
    Aligned<float> actual(45 * kOutputs);
    const ExpertOutput output = {
        .weight = packed->weight, .outputs = kOutputs, .bias = bias.data(), .out = actual.data()};
    const auto pool = MakePool(3);
    const absl::Status status = table->expert_linear({.activations = a,
                                                      .expert_begin = kBegin,
                                                      .outputs = absl::MakeConstSpan(&output, 1),
                                                      .round_to_bf16 = reduced},
                                                     {pool.get()});
    ASSERT_TRUE(status.ok()) << status;
    Aligned<float> expected(45 * kOutputs);
    for (int64_t e = 0; e < kNumExperts; ++e) {
      RandomWeight one = {format, kOutputs, cols, {}, {}};
      const size_t bytes = weight.blocks.size() / kNumExperts;
      const auto begin = weight.blocks.begin() + static_cast<std::ptrdiff_t>(bytes) * e;
      one.blocks.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
      const auto one_packed = Pack(*table, one);
      const int64_t first = kBegin[static_cast<size_t>(e)];
      const int64_t count = kBegin[static_cast<size_t>(e) + 1] - first;
      const LinearOutput linear = {.weight = one_packed->weight,
                                   .bias = bias.data() + e * kOutputs,
                                   .out = expected.data() + first * kOutputs,
                                   .out_stride = kOutputs};
      ASSERT_TRUE(table
                      ->linear({.activations =
                                    quants ? rows.Quants(first, count) : rows.Values(first, count),
                                .outputs = absl::MakeConstSpan(&linear, 1),
                                .round_to_bf16 = reduced},
                               {})
                      .ok());
    }
    EXPECT_TRUE(SameBits(actual, expected)) << (reduced ? "reduced" : "f32");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExpertLinearTest,
                         testing::Combine(testing::ValuesIn(AvailableKernels()),
                                          testing::ValuesIn(AllWeightFormats())),
                         [](const testing::TestParamInfo<ExpertLinearTest::ParamType>& param_info) {
                           return std::string(std::get<0>(param_info.param)->name) + "_" +
                                  GetWeightFormat(std::get<1>(param_info.param)).name;
                         });

TEST_P(MoeTest, ExpertsShareTheRowsEquallyWhenNothingElseIsSaid) {
  std::mt19937 random(11);
  const auto packed = Pack(kernels(), MakeRandomWeight(WeightFormat::kF16, 96, 32, &random));
  const RandomActivations rows(34, 32, &random);
  Aligned<float> results[2] = {Aligned<float>(34 * 48), Aligned<float>(34 * 48)};
  const std::vector<int32_t> begin = {0, 17, 34};
  for (const bool is_said : {true, false}) {
    const ExpertOutput output = {
        .weight = packed->weight, .outputs = 48, .out = results[is_said ? 0 : 1].data()};
    ExpertLinearParams params = {.activations = rows.Values(0, 34),
                                 .expert_begin = {},
                                 .outputs = absl::MakeConstSpan(&output, 1)};
    if (is_said) params.expert_begin = begin;
    const absl::Status status = kernels().expert_linear(params, {});
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(SameBits(results[0], results[1]));
}

TEST_P(MoeTest, RefusesExpertsThatDoNotFitTheirRows) {
  std::mt19937 random(7);
  const auto packed = Pack(kernels(), MakeRandomWeight(WeightFormat::kF32, 96, 32, &random));
  const RandomActivations rows(5, 32, &random);
  Aligned<float> out(5 * 48);
  ExpertOutput output = {.weight = packed->weight, .outputs = 48, .out = out.data()};
  const auto run = [&](std::vector<int32_t> begin) {
    return kernels().expert_linear({.activations = rows.Values(0, 5),
                                    .expert_begin = begin,
                                    .outputs = absl::MakeConstSpan(&output, 1)},
                                   {});
  };
  EXPECT_TRUE(run({0, 2, 5}).ok());
  for (const std::vector<int32_t>& begin :
       std::vector<std::vector<int32_t>>{{0, 2, 4}, {0, 6, 5}, {1, 2, 5}, {0, 5}, {0}, {}}) {
    EXPECT_EQ(run(begin).code(), absl::StatusCode::kInvalidArgument);
  }
  output.outputs = 40;
  EXPECT_EQ(run({0, 2, 5}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace llm
