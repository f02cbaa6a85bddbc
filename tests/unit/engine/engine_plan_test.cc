// Engine options resolved into numbers.
#include "src/engine/engine_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class EnginePlanTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<ModelFile>> file =
        OpenModelFile(std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto source = OpenGguf(*std::move(file), LoaderLimits());
    ASSERT_TRUE(source.ok()) << source.status();
    config_ = *ReadModelConfig(**source);
    kernels_ = *FindKernels("reference");
  }
  absl::StatusOr<EnginePlan> Plan(const OpenOptions& options,
                                  int64_t available = int64_t{1} << 40) {
    return PlanEngine(config_, *kernels_, false, options, available);
  }

  ModelConfig config_;
  const KernelTable* kernels_ = nullptr;
};

TEST_F(EnginePlanTest, DefaultsToEightSequencesOf2048TokensOrTheContext) {
  const absl::StatusOr<EnginePlan> plan = Plan(OpenOptions());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kv_tokens, 8 * 2048);
  EXPECT_EQ(plan->max_context_tokens, config_.context_length);
  EXPECT_EQ(plan->runner.num_blocks[0], 8 * 2048 / 16);
  EXPECT_EQ(plan->step_ns, 100'000'000);
  config_.context_length = 1 << 16;
  EXPECT_EQ(Plan(OpenOptions())->kv_tokens, 1 << 16);
}

TEST_F(EnginePlanTest, TheDefaultKvTakesAtMostAQuarterOfFreeMemory) {
  const int64_t available = 4 << 20;
  const absl::StatusOr<EnginePlan> plan = Plan(OpenOptions(), available);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->kv_bytes, static_cast<uint64_t>(available / 4));
  EXPECT_GT(plan->kv_bytes, static_cast<uint64_t>(available / 8));
}

TEST_F(EnginePlanTest, ALimitIsNeverExceeded) {
  OpenOptions options;
  options.max_memory_bytes = 100'000;
  EXPECT_EQ(Plan(options).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(EnginePlanTest, NamesTheOptionThatIsOutOfRange) {
  OpenOptions options;
  options.max_context_tokens = config_.context_length + 1;
  EXPECT_THAT(std::string(Plan(options).status().message()), HasSubstr("max_context_tokens"));
  options = OpenOptions();
  options.kv_tokens = UINT64_MAX;
  EXPECT_THAT(std::string(Plan(options).status().message()), HasSubstr("kv_tokens"));
  options = OpenOptions();
  options.num_threads = 100000;
  EXPECT_THAT(std::string(Plan(options).status().message()), HasSubstr("num_threads"));
}

}  // namespace
}  // namespace llm
