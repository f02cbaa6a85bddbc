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

TEST_F(EnginePlanTest, OnADeviceTheDefaultKvTakesWhatIsLeft) {
  KernelTable device = *kernels_;
  device.open_device = [](uint32_t) -> absl::StatusOr<std::shared_ptr<Device>> {
    return absl::UnavailableError("");
  };
  kernels_ = &device;
  const auto on_device = [](const EnginePlan& plan) {
    return plan.kv_bytes + plan.workspace_bytes;
  };
  const uint64_t block_bytes = 1 << 20;  // more than one has here
  for (const uint64_t available : {uint64_t{1} << 30, uint64_t{16} << 30}) {
    const absl::StatusOr<EnginePlan> plan = Plan(OpenOptions(), static_cast<int64_t>(available));
    ASSERT_TRUE(plan.ok()) << plan.status();
    const uint64_t usable = available - std::max(uint64_t{256} << 20, available / 20);
    EXPECT_LE(plan->kv_bytes, usable);
    // Pinned memory is the host's.
    EXPECT_GE(on_device(*plan) + block_bytes, usable);
  }
  OpenOptions options;
  options.max_memory_bytes = 500 << 20;
  const absl::StatusOr<EnginePlan> limited = Plan(options, int64_t{80} << 30);
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_LE(on_device(*limited), options.max_memory_bytes);
  EXPECT_GE(on_device(*limited) + block_bytes, options.max_memory_bytes);
  // Less than the reserve: the fewest tokens, if they fit.
  EXPECT_EQ(Plan(OpenOptions(), 200 << 20)->kv_tokens, 256);
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
