// What a backend lacks shows before anything is read.
#include "src/model/kernel_support.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference.h"
#include "src/model/weights.h"
#include "tests/support/random_model.h"

namespace llm {
namespace {

using testing::HasSubstr;

absl::Status PlanWith(const KernelTable& kernels, const char* architecture) {
  const FakeWeightSource source =
      RandomModel({.architecture = architecture, .format = WeightFormat::kQ4_1});
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  if (!config.ok()) return config.status();
  return PlanLoad(source, *config, kernels, 1).status();
}

TEST(KernelSupportTest, NamesTheOpThatIsMissing) {
  KernelTable kernels = ReferenceKernels();
  kernels.moe_gather = nullptr;
  EXPECT_TRUE(PlanWith(kernels, "llama").ok());
  EXPECT_TRUE(PlanWith(kernels, "deepseek2").code() == absl::StatusCode::kUnimplemented);
  const absl::Status experts = PlanWith(kernels, "qwen3moe");
  EXPECT_EQ(experts.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(experts.message()), HasSubstr("moe_gather"));
}

TEST(KernelSupportTest, NamesTheTensorWhoseFormatIsMissing) {
  KernelTable kernels = ReferenceKernels();
  kernels.check_format = [](WeightFormat format) {
    return format == WeightFormat::kQ4_1 ? absl::UnimplementedError("no kernels for Q4_1")
                                         : absl::OkStatus();
  };
  const absl::Status status = PlanWith(kernels, "llama");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor blk.0."));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no kernels for Q4_1"));
}

}  // namespace
}  // namespace llm
