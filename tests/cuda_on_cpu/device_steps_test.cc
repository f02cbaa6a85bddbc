// A runner that begins the next step early: what it gives for it, what that step took, and what
// becomes of one that nobody asks for.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/support/model_harness.h"
#include "tests/support/random_model.h"

namespace llm {
namespace {

constexpr int64_t kMillisecond = 1'000'000;  // between any two events of the emulated device

class DeviceStepsTest : public GpuTest {
 protected:
  DeviceStepsTest() {
    const FakeWeightSource source =
        RandomModel({.architecture = "llama", .format = WeightFormat::kQ4_1});
    HarnessOptions options;
    options.kernels = *FindCudaKernels();
    options.kv_dtype = DType::kF16;
    harness_ = std::move(ModelHarness::Create(source, options)).value();
    first_ = NewSequence(20, 1);
    second_ = NewSequence(17, 2);
  }
  std::unique_ptr<Sequence> NewSequence(int32_t size, uint64_t arrival_index) {
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < size; ++i) tokens.push_back((i * i * 31 + i * 7) % 160);
    std::unique_ptr<Sequence> sequence = harness_->NewSequence(tokens, size + 20);
    sequence->request.prompt = std::move(tokens);
    sequence->request.stop.max_new_tokens = 20;
    sequence->score_begin = -1;  // its best tokens are all that is asked for
    sequence->arrival_index = arrival_index;
    return sequence;
  }
  // One step; sequences get the tokens of their rows.
  StepLogits Step(const std::vector<ScheduledChunk>& chunks, bool looks_ahead) {
    StepPlan plan;
    plan.chunks = chunks;
    plan.looks_ahead = looks_ahead;
    for (const ScheduledChunk& chunk : chunks) plan.num_tokens += chunk.length;
    const absl::StatusOr<StepLogits> logits = runner().Execute(plan);
    EXPECT_TRUE(logits.ok()) << logits.status();
    if (!logits.ok()) return {};
    EXPECT_EQ(logits->argmax.size(), chunks.size());
    for (size_t i = 0; i < chunks.size(); ++i) {
      chunks[i].sequence->tokens.push_back(logits->argmax[i]);
    }
    return *logits;
  }
  ModelRunner& runner() { return harness_->runner(); }

  std::unique_ptr<ModelHarness> harness_;
  std::unique_ptr<Sequence> first_, second_;
};

TEST_F(DeviceStepsTest, AStepThatIsAskedForIsTheOneThatHasBegun) {
  EXPECT_EQ(Step({{first_.get(), 0, 20, 1}, {second_.get(), 0, 17, 1}}, true).device_ns, 0);
  EXPECT_TRUE(runner().is_ahead());
  EXPECT_TRUE(gpu().has_work());
  const int64_t calls = gpu().num_calls();
  EXPECT_EQ(Step({{second_.get(), 17, 1, 1}, {first_.get(), 20, 1, 1}}, false).device_ns,
            kMillisecond);
  EXPECT_LT(gpu().num_calls() - calls, 12);
  EXPECT_FALSE(runner().is_ahead());
  EXPECT_EQ(runner().ahead().steps_total, 1u);

  const std::vector<int32_t> of_first = first_->tokens, of_second = second_->tokens;
  first_->tokens.resize(21);
  second_->tokens.resize(18);
  Step({{first_.get(), 20, 1, 1}, {second_.get(), 17, 1, 1}}, false);  // once more, as it is
  EXPECT_EQ(first_->tokens, of_first);
  EXPECT_EQ(second_->tokens, of_second);
}

// The device may have been idle for long in between: that is no step's time.
TEST_F(DeviceStepsTest, AStepBehindOneThatNobodyAskedForTellsNoTime) {
  Step({{first_.get(), 0, 20, 1}}, true);
  const StepLogits other = Step({{second_.get(), 0, 17, 1}}, true);
  EXPECT_EQ(other.device_ns, StepLogits::kNotMeasured);
  EXPECT_EQ(runner().ahead().dropped_total, 1u);
  const int32_t token = second_->tokens.back();
  EXPECT_EQ(Step({{second_.get(), 17, 1, 1}}, false).device_ns, kMillisecond);
  second_->tokens.resize(17);
  EXPECT_EQ(Step({{second_.get(), 0, 17, 1}}, false).device_ns, 0);
  EXPECT_EQ(second_->tokens.back(), token);
}

}  // namespace
}  // namespace llm
