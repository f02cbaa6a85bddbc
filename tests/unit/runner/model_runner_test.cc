// The runner allocates what was planned, and turns what it cannot run into a status.
#include "src/runner/model_runner.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference.h"
#include "tests/support/model_harness.h"
#include "tests/support/random_model.h"

namespace llm {
namespace {

RunnerOptions SmallOptions() {
  RunnerOptions options;
  options.max_step_tokens = 32;
  options.max_sequences = 4;
  options.max_logit_rows = 8;
  options.max_context = 64;
  options.num_blocks = {6, 5};
  return options;
}

class ModelRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = *ThreadPool::Create({.num_threads = 2});
    auto model =
        LoadModel(RandomModel({.architecture = "gemma3"}),
                  {.kernels = &ReferenceKernels(), .pool = pool_.get(), .allocator = &allocator_});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  Allocator allocator_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Model> model_;
};

TEST_F(ModelRunnerTest, AllocatesExactlyWhatWasPlanned) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kI8, DType::kI4}) {
    RunnerOptions options = SmallOptions();
    options.kv_dtype = dtype;
    const auto plan = PlanRunner(model_->config, *model_->kernels, options, pool_->num_threads());
    ASSERT_TRUE(plan.ok()) << plan.status();
    const size_t before = allocator_.allocated_bytes();
    const auto runner = ModelRunner::Create(model_.get(), options, pool_.get(), &allocator_);
    ASSERT_TRUE(runner.ok()) << runner.status();
    EXPECT_EQ(allocator_.allocated_bytes() - before, plan->kv_cache + plan->workspace);
    EXPECT_EQ(plan->kv_cache, 6 * plan->kv_block[0] + 5 * plan->kv_block[1]);
  }
}

TEST_F(ModelRunnerTest, PlansTheWorkspaceOfEveryKindOfLayer) {
  for (const char* architecture : {"llama", "gemma2", "qwen3moe", "phi3", "gpt-oss", "deepseek2"}) {
    auto harness = ModelHarness::Create(RandomModel({.architecture = architecture}),
                                        {.kernels = &ReferenceKernels()});
    ASSERT_TRUE(harness.ok()) << harness.status();
    const Model& model = (*harness)->model();
    RunnerOptions options = SmallOptions();
    options.num_blocks.resize(model.config.kv_groups.size());
    const auto plan = PlanRunner(model.config, *model.kernels, options, pool_->num_threads());
    ASSERT_TRUE(plan.ok()) << plan.status();
    const size_t before = allocator_.allocated_bytes();
    const auto runner = ModelRunner::Create(&model, options, pool_.get(), &allocator_);
    ASSERT_TRUE(runner.ok()) << runner.status();
    EXPECT_EQ(allocator_.allocated_bytes() - before, plan->kv_cache + plan->workspace);
  }
}

TEST_F(ModelRunnerTest, PlansKvBytesPerBlockWithoutKnowingTheNumberOfBlocks) {
  RunnerOptions options = SmallOptions();
  options.num_blocks.clear();
  options.kv_dtype = DType::kF16;
  const auto plan = PlanRunner(model_->config, *model_->kernels, options, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const size_t layer_block = 2 * 2 * 16 * 2 * 32;  // keys and values, f16, 16 tokens, 2 heads of 32
  EXPECT_THAT(plan->kv_block, testing::ElementsAre(layer_block, 2 * layer_block));
  EXPECT_EQ(plan->kv_cache, 0u);
}

TEST_F(ModelRunnerTest, NamesAnOptionThatIsOutOfRange) {
  const auto expect_refused = [&](RunnerOptions options, const char* name) {
    const absl::Status status =
        ModelRunner::Create(model_.get(), options, pool_.get(), &allocator_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(name));
  };
  RunnerOptions options = SmallOptions();
  options.max_step_tokens = 0;
  expect_refused(options, "max_step_tokens");
  options = SmallOptions();
  options.block_size = 48;
  expect_refused(options, "block_size");
  options = SmallOptions();
  options.max_logit_rows = -1;
  expect_refused(options, "max_logit_rows");
  options = SmallOptions();
  options.num_blocks = {5};
  expect_refused(options, "num_blocks");
  options = SmallOptions();
  options.kv_dtype = DType::kI32;
  expect_refused(options, "i32");
}

TEST_F(ModelRunnerTest, ReportsWhatTheAllocatorRefuses) {
  Allocator small;
  small.set_limit_bytes(10000);
  EXPECT_EQ(ModelRunner::Create(model_.get(), SmallOptions(), pool_.get(), &small).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(small.allocated_bytes(), 0u);
}

TEST_F(ModelRunnerTest, AStepAllocatesNothing) {
  auto harness = ModelHarness::Create(RandomModel({}), {.kernels = &ReferenceKernels()});
  ASSERT_TRUE(harness.ok()) << harness.status();
  const size_t before = (*harness)->allocator().allocated_bytes();
  const auto sequence = (*harness)->NewSequence({1, 2, 3, 4}, 16);
  ASSERT_TRUE((*harness)->Run({{sequence.get(), 0, 4, 4}}).ok());
  EXPECT_EQ((*harness)->allocator().allocated_bytes(), before);
}

TEST_F(ModelRunnerTest, StatsDescribeTheLogits) {
  auto harness = ModelHarness::Create(RandomModel({}), {.kernels = &ReferenceKernels()});
  ASSERT_TRUE(harness.ok()) << harness.status();
  const auto sequence = (*harness)->NewSequence({5, 6, 7}, 16);
  StepPlan plan;
  plan.chunks = {{sequence.get(), 0, 3, 2}};
  plan.num_tokens = 3;
  const absl::StatusOr<StepLogits> step = (*harness)->runner().Execute(plan);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->rows, 2);
  EXPECT_EQ(step->vocab_size, 160);
  for (size_t row = 0; row < 2; ++row) {
    const float* logits = step->logits + row * 160;
    EXPECT_EQ(step->argmax[row], std::max_element(logits, logits + 160) - logits);
    EXPECT_EQ(step->max[row], logits[step->argmax[row]]);
    EXPECT_GT(step->log_sum_exp[row], step->max[row]);
  }
}

TEST_F(ModelRunnerTest, ANormThatIsNotFiniteShowsInTheStatsAndNowhereElse) {
  for (const bool float_activations : {true, false}) {
    FakeWeightSource source = RandomModel({.format = WeightFormat::kQ8_0});
    std::vector<uint8_t> data(64 * sizeof(float), 0xff);  // NaN
    source.Add("blk.1.ffn_norm.weight", WeightFormat::kF32, {64}, std::move(data));
    auto harness = ModelHarness::Create(
        source, {.kernels = &ReferenceKernels(), .float_activations = float_activations});
    ASSERT_TRUE(harness.ok()) << harness.status();
    const auto sequence = (*harness)->NewSequence({5, 6, 7}, 16);
    StepPlan plan;
    plan.chunks = {{sequence.get(), 0, 3, 1}};
    const absl::StatusOr<StepLogits> step = (*harness)->runner().Execute(plan);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->argmax[0], -1);
  }
}

// Beside rows of logits, which they leave alone.
TEST_F(ModelRunnerTest, HiddenStatesAreTheSameAloneAndBesideLogits) {
  for (const bool float_activations : {true, false}) {
    auto harness = ModelHarness::Create(
        RandomModel({.format = WeightFormat::kQ8_0}),
        {.kernels = &ReferenceKernels(), .float_activations = float_activations});
    ASSERT_TRUE(harness.ok()) << harness.status();
    const auto drawn = (*harness)->NewSequence({5, 6, 7}, 16);
    const auto embedded = (*harness)->NewSequence({8, 9, 10, 11}, 16);
    const ScheduledChunk logits_chunk = {drawn.get(), 0, 3, 2};
    ScheduledChunk hidden_chunk = {embedded.get(), 0, 4, 0};
    hidden_chunk.num_hidden = 3;
    StepPlan plan;
    plan.chunks = {hidden_chunk};
    auto step = (*harness)->runner().Execute(plan);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->rows, 0);
    ASSERT_EQ(step->hidden_rows, 3);
    ASSERT_EQ(step->hidden_size, 64);
    const std::vector<float> hidden(step->hidden, step->hidden + 3 * 64);
    EXPECT_NE(std::count(hidden.begin(), hidden.end(), 0.0f), 3 * 64);
    plan.chunks = {logits_chunk};
    step = (*harness)->runner().Execute(plan);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->hidden_rows, 0);
    const std::vector<float> logits(step->logits, step->logits + 2 * 160);
    plan.chunks = {hidden_chunk, logits_chunk};
    step = (*harness)->runner().Execute(plan);
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_EQ(step->hidden_rows, 3);
    ASSERT_EQ(step->rows, 2);
    EXPECT_TRUE(std::equal(hidden.begin(), hidden.end(), step->hidden));
    EXPECT_TRUE(std::equal(logits.begin(), logits.end(), step->logits));
  }
}

TEST_F(ModelRunnerTest, RefusesMoreHiddenStatesThanTokensOrPlannedRows) {
  auto harness =
      ModelHarness::Create(RandomModel({}), {.kernels = &ReferenceKernels(), .max_logit_rows = 4});
  ASSERT_TRUE(harness.ok()) << harness.status();
  const auto sequence = (*harness)->NewSequence({1, 2, 3, 4, 5}, 16);
  const auto run = [&](int32_t length, int32_t num_logits, int32_t num_hidden) {
    StepPlan plan;
    plan.chunks = {{sequence.get(), 0, length, num_logits, num_hidden}};
    return (*harness)->runner().Execute(plan).status().code();
  };
  EXPECT_EQ(run(3, 0, 4), absl::StatusCode::kInternal);
  EXPECT_EQ(run(3, 0, -1), absl::StatusCode::kInternal);
  EXPECT_EQ(run(5, 0, 5), absl::StatusCode::kInternal);
  EXPECT_EQ(run(5, 3, 2), absl::StatusCode::kInternal);
  EXPECT_EQ(run(5, 2, 2), absl::StatusCode::kOk);
}

TEST_F(ModelRunnerTest, ReportsATokenOutsideTheVocabulary) {
  auto harness = ModelHarness::Create(RandomModel({}), {.kernels = &ReferenceKernels()});
  ASSERT_TRUE(harness.ok()) << harness.status();
  for (const int32_t bad : {-1, 160}) {
    const auto sequence = (*harness)->NewSequence({1, bad}, 16);
    EXPECT_EQ((*harness)->Run({{sequence.get(), 0, 2, 1}}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ModelRunnerTest, RefusesACopyOutsideTheBlocks) {
  auto harness = ModelHarness::Create(RandomModel({}), {.kernels = &ReferenceKernels()});
  ASSERT_TRUE(harness.ok()) << harness.status();
  const auto refused = [&](const BlockCopy& copy) {
    return (*harness)->Run({}, {copy}).status().code() == absl::StatusCode::kInternal;
  };
  EXPECT_TRUE(refused({.group = 1, .source = 0, .destination = 1, .tokens = 1}));
  EXPECT_TRUE(refused({.group = 0, .source = -1, .destination = 1, .tokens = 1}));
  EXPECT_TRUE(refused({.group = 0, .source = 0, .destination = 64, .tokens = 1}));
  EXPECT_FALSE(refused({.group = 0, .source = 0, .destination = 63, .tokens = 1}));
}

}  // namespace
}  // namespace llm
