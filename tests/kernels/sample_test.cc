// sample: rows worked out by hand, every backend and the engine's own sampler against the
// reference, token for token.
#include <algorithm>
#include <limits>

#include "kernels/sample_math.h"
#include "src/sampling/row_adjuster.h"
#include "tests/kernels/kernel_test_util.h"

namespace llm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SampleTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, SampleTest, testing::ValuesIn(AvailableKernels()), BackendName);

// Rows with their measures, and what is drawn from them.
struct Rows {
  Rows(Aligned<float> values, int64_t num_rows) : logits(std::move(values)), rows(num_rows) {
    const auto n = static_cast<size_t>(rows);
    argmax.resize(n);
    max.resize(n);
    log_sum_exp.resize(n);
    const RowStatsParams params = {.logits = logits.data(),
                                   .rows = rows,
                                   .cols = cols(),
                                   .argmax = argmax.data(),
                                   .max = max.data(),
                                   .log_sum_exp = log_sum_exp.data()};
    EXPECT_TRUE(ReferenceRowStats(params, {}).ok());
  }
  int64_t cols() const { return static_cast<int64_t>(logits.size()) / rows; }
  SampleParams Params() {
    drawn.assign(draws.size(), {-77, -77.0f});
    top.assign(draws.size() * kMaxTopLogprobs, {-77, -77.0f});
    originals.assign(edits.size(), 0);
    return {.logits = logits.data(),
            .rows = rows,
            .cols = cols(),
            .argmax = argmax.data(),
            .max = max.data(),
            .log_sum_exp = log_sum_exp.data(),
            .draws = draws,
            .edits = edits,
            .originals = originals.data(),
            .drawn = drawn.data(),
            .top = top.data(),
            .max_top = kMaxTopLogprobs};
  }
  // Leaves the logits as they were, which it checks.
  void Run(const KernelTable& kernels) {
    const Aligned<float> before = logits;
    const absl::Status status = kernels.sample(Params(), {});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(SameBits(logits, before));
  }
  int32_t Draw(const KernelTable& kernels, const RowDraw& draw) {
    draws = {draw};
    Run(kernels);
    return drawn[0].id;
  }

  Aligned<float> logits;
  int64_t rows;
  Aligned<int32_t> argmax;
  Aligned<float> max, log_sum_exp;
  std::vector<RowDraw> draws;
  std::vector<LogitEdit> edits;
  Aligned<float> originals;
  std::vector<TokenLogprob> drawn, top;
};

TEST_P(SampleTest, DrawsWhereTheRandomPlaceLies) {
  // Weights 1, 1, 2 and 4 eighths, in id order.
  Rows rows({0, 0, std::log(2.0f), std::log(4.0f)}, 1);
  for (int64_t position = 0; position < 40; ++position) {
    const double place = static_cast<double>(RandomBits(9, position)) * 0x1p-64;
    const int32_t expected = place < 0.125 ? 0 : place < 0.25 ? 1 : place < 0.5 ? 2 : 3;
    const RowDraw draw = {.seed = 9, .position = position, .temperature = 1};
    EXPECT_EQ(rows.Draw(kernels(), draw), expected) << place;
  }
}

TEST_P(SampleTest, FiltersKeepTheLowerIdAtATie) {
  Rows rows(Aligned<float>(3000, 1.5f), 1);
  for (int64_t position = 0; position < 8; ++position) {
    RowDraw draw = {.seed = 1, .position = position, .temperature = 1};
    draw.top_k = 40;
    EXPECT_LT(rows.Draw(kernels(), draw), 40);
    draw.top_p = 0.099f;  // of forty: four
    EXPECT_LT(rows.Draw(kernels(), draw), 4);
    draw.top_k = 0;  // of three thousand: 297
    EXPECT_LT(rows.Draw(kernels(), draw), 297);
    EXPECT_EQ(rows.Draw(kernels(), {.position = position, .temperature = 1, .top_p = 0}), 0);
  }
  EXPECT_EQ(rows.Draw(kernels(), {.temperature = 1, .top_k = 1}), 0);
}

TEST_P(SampleTest, ListsTheMostLikelyIdsOfTheRowAsItWas) {
  for (const int64_t cols : {20, 33, 6000}) {
    Aligned<float> logits(static_cast<size_t>(cols), -3.0f);  // ties of more than are listed
    logits[7] = logits[3] = 2.0f;
    logits[11] = 2.5f;
    Rows rows(logits, 1);
    rows.edits = {{.id = 11, .bias = -kInfinity}};
    EXPECT_EQ(rows.Draw(kernels(), {.edits_end = 1, .num_top = 20}), 3);
    const std::vector<int32_t> expected = {11, 3, 7, 0, 1, 2, 4, 5, 6, 8};
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(rows.top[i].id, expected[i]) << i;
    EXPECT_EQ(rows.top[0].logprob, 2.5f - rows.log_sum_exp[0]);
    EXPECT_EQ(rows.top[19].id, 19);
    EXPECT_EQ(rows.drawn[0].logprob, 2.0f - rows.log_sum_exp[0]);
  }
}

TEST_P(SampleTest, EditsChangeWhatIsDrawn) {
  Rows rows({4, 3, -1, -2, 0}, 1);
  rows.edits = {{.id = 0, .repetition = 2.0f}, {.id = 1, .penalty = 1.5f}, {.id = 3, .bias = 4.5f}};
  EXPECT_EQ(rows.Draw(kernels(), {.edits_end = 3}), 3);
  EXPECT_EQ(rows.drawn[0].logprob, -2.0f - rows.log_sum_exp[0]);
  EXPECT_EQ(rows.Draw(kernels(), {.edits_end = 2}), 0);
  EXPECT_EQ(rows.Draw(kernels(), {.edits_begin = 0, .edits_end = 0}), 0);
}

TEST_P(SampleTest, SaysWhyNothingIsDrawn) {
  Rows rows({1, 2, std::numeric_limits<float>::quiet_NaN(), 0, kInfinity, 0}, 3);
  rows.edits = {{.id = 0, .bias = -kInfinity},
                {.id = 1, .bias = -kInfinity},
                {.id = 1, .bias = 1e38f, .repetition = 0.01f}};
  rows.draws = {{.row = 0, .edits_end = 2, .temperature = 1},
                {.row = 1, .edits_begin = 2, .edits_end = 2, .temperature = 1},
                {.row = 2, .edits_begin = 2, .edits_end = 2, .temperature = 1}};
  const Aligned<float> before = rows.logits;
  ASSERT_TRUE(kernels().sample(rows.Params(), {}).ok());
  EXPECT_EQ(rows.drawn[0].id, kNothingToDraw);
  EXPECT_EQ(rows.drawn[1].id, kLogitsNotFinite);
  EXPECT_EQ(rows.drawn[2].id, kLogitsNotFinite);
  EXPECT_TRUE(SameBits(rows.logits, before));
  EXPECT_EQ(rows.Draw(kernels(), {.edits_begin = 2, .edits_end = 3}), kLogitsNotFinite);
}

TEST_P(SampleTest, ExtremesStayInTheRow) {
  Rows rows({-3e38f, 3e38f, -kInfinity, 1e-40f}, 1);
  for (const float temperature : {1e-45f, 1e-38f, 1e-6f, 1.0f}) {
    EXPECT_EQ(rows.Draw(kernels(), {.temperature = temperature, .top_p = 0.99f}), 1);
  }
  const RowDraw hot = {.temperature = 3e38f, .top_k = 3, .top_p = 0.9f, .log_min_p = -2.3f};
  EXPECT_NE(rows.Draw(kernels(), hot), 2);
}

// What a request of index i asks for: filters, penalties, bans and lists in many mixtures.
SamplingParams MixtureOf(size_t i, size_t cols, std::mt19937* random) {
  SamplingParams params;
  params.seed = (*random)();
  params.temperature = i % 5 == 4 ? 0.0f : 0.3f + 0.3f * static_cast<float>(i % 4);
  if (i % 3 != 0) params.top_k = static_cast<int32_t>(1 + (*random)() % (i % 2 == 0 ? 50 : cols));
  if (i % 4 != 0) params.top_p = 0.05f + 0.9f * static_cast<float>((*random)() % 1000) / 1000;
  if (i % 7 == 0) params.min_p = 0.001f * static_cast<float>(1 + (*random)() % 300);
  if (i % 6 == 1) params.repetition_penalty = 1.3f;
  if (i % 6 == 2) params.frequency_penalty = 0.7f;
  if (i % 6 == 3) params.logit_bias = {{static_cast<int32_t>((*random)() % cols), 3.0f}};
  params.num_logprobs = i % 8 == 0 ? 5 : i % 8 == 1 ? 20 : 0;
  params.num_logprobs = std::min(params.num_logprobs, static_cast<int32_t>(cols));
  return params;
}

// The promise that a seed gives one answer wherever it is drawn.
TEST_P(SampleTest, DrawsWhatTheEnginesSamplerDraws) {
  constexpr size_t kRows = 24;
  std::mt19937 random(3);
  for (const size_t cols : {size_t{1}, size_t{33}, size_t{1000}, size_t{9001}}) {
    Aligned<float> logits = RandomFloats(kRows * cols, static_cast<uint32_t>(cols), 4.0f);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (i / cols % 2 == 0) logits[i] = std::round(logits[i]);  // ties
    }
    Rows rows(logits, kRows);
    LogitEdits edits(static_cast<int32_t>(cols));
    RowAdjuster adjuster(static_cast<int32_t>(cols));
    std::vector<SampledToken> expected;
    for (size_t i = 0; i < kRows; ++i) {
      const SamplingParams params = MixtureOf(i, cols, &random);
      std::vector<int32_t> tokens;
      for (int j = 0; j < 12; ++j) tokens.push_back(static_cast<int32_t>(random() % cols));
      edits.Begin();
      edits.Apply(params, tokens, 4);
      RowDraw draw = {.seed = params.seed,
                      .position = 12,
                      .row = static_cast<int32_t>(i),
                      .edits_begin = static_cast<int32_t>(rows.edits.size()),
                      .num_top = params.num_logprobs,
                      .temperature = params.temperature,
                      .top_k = params.top_k,
                      .top_p = params.top_p};
      if (params.min_p > 0) draw.log_min_p = std::log(params.min_p);
      for (const LogitEdit& edit : edits.edits()) rows.edits.push_back(edit);
      draw.edits_end = static_cast<int32_t>(rows.edits.size());
      rows.draws.push_back(draw);
      LogitsRow row;
      row.logits = absl::MakeConstSpan(rows.logits).subspan(i * cols, cols);
      row.argmax = rows.argmax[i];
      row.max = rows.max[i];
      row.log_sum_exp = rows.log_sum_exp[i];
      absl::StatusOr<SampledToken> token = Sample(adjuster.Adjust(row, edits.edits()), params, 12);
      ASSERT_TRUE(token.ok()) << token.status();
      SetLogprobs(row, params.num_logprobs, &*token);
      expected.push_back(*std::move(token));
    }
    rows.Run(kernels());
    for (size_t i = 0; i < kRows; ++i) {
      SCOPED_TRACE(testing::Message() << cols << " ids, row " << i);
      EXPECT_EQ(rows.drawn[i].id, expected[i].id);
      EXPECT_EQ(rows.drawn[i].logprob, expected[i].logprob);
      for (size_t j = 0; j < expected[i].top.size(); ++j) {
        EXPECT_EQ(rows.top[i * kMaxTopLogprobs + j].id, expected[i].top[j].id) << j;
        EXPECT_EQ(rows.top[i * kMaxTopLogprobs + j].logprob, expected[i].top[j].logprob) << j;
      }
    }
  }
}

// A vocabulary of a real model: the list of candidates overflows where ties are many.
TEST_P(SampleTest, EqualsTheReferenceOnALargeVocabulary) {
  for (const bool coarse : {false, true}) {
    Aligned<float> logits = RandomFloats(50001, 8, 2.0f);
    if (coarse) {
      for (float& logit : logits) logit = std::round(logit);
    }
    Rows rows(logits, 1);
    for (const RowDraw& draw :
         {RowDraw{.seed = 4, .num_top = 3, .temperature = 0.8f, .top_k = 20000, .top_p = 0.97f},
          RowDraw{.seed = 5, .temperature = 1.5f, .top_p = 0.9f}}) {
      const int32_t expected = rows.Draw(ReferenceKernels(), draw);
      const std::vector<TokenLogprob> top = rows.top;
      EXPECT_EQ(rows.Draw(kernels(), draw), expected);
      for (size_t i = 0; i < top.size(); ++i) EXPECT_EQ(rows.top[i].id, top[i].id);
    }
  }
}

TEST_P(SampleTest, RefusesWrongArguments) {
  Rows rows({1, 2, 3, 4}, 2);
  const auto refuses = [&](const std::vector<RowDraw>& draws) {
    rows.draws = draws;
    return absl::IsInvalidArgument(kernels().sample(rows.Params(), {}));
  };
  rows.edits = {{.id = 1}};
  EXPECT_FALSE(refuses({{.row = 0, .edits_end = 1}, {.row = 1, .edits_begin = 1, .edits_end = 1}}));
  EXPECT_TRUE(refuses({{.row = 0, .edits_end = 1}, {.row = 1, .edits_end = 1}}));
  EXPECT_TRUE(refuses({{.row = 1}, {.row = 1}}));
  EXPECT_TRUE(refuses({{.row = 2}}));
  EXPECT_TRUE(refuses({{.edits_end = 2}}));
  EXPECT_TRUE(refuses({{.num_top = 3}}));
  EXPECT_TRUE(refuses({{.temperature = -1}}));
  rows.edits = {{.id = 2}};
  EXPECT_TRUE(refuses({{.edits_end = 1}}));
}

}  // namespace
}  // namespace llm
