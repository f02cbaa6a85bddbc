// Tensors are checked by name and shape, predicted to the byte, and packed as if by one call.
#include "src/model/weights.h"

#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference.h"
#include "src/model/model.h"
#include "tests/support/random_model.h"

namespace llm {
namespace {

using testing::HasSubstr;

class WeightsTest : public testing::Test {
 protected:
  void SetUp() override { pool_ = *ThreadPool::Create({.num_threads = 2}); }

  absl::StatusOr<std::unique_ptr<Model>> Load(const WeightSource& source) {
    return LoadModel(source, options());
  }
  WeightsOptions options() {
    return {.kernels = &ReferenceKernels(), .pool = pool_.get(), .allocator = &allocator_};
  }
  void ExpectRefused(const WeightSource& source, absl::StatusCode code,
                     const std::string& message) {
    const absl::Status status = Load(source).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_EQ(allocator_.allocated_bytes(), 0u);
  }

  Allocator allocator_;
  std::unique_ptr<ThreadPool> pool_;
};

TEST_F(WeightsTest, AllocatesExactlyWhatTheHeaderPredicts) {
  for (const char* architecture :
       {"llama", "gemma2", "gemma3", "qwen3moe", "phi3", "gpt-oss", "deepseek2"}) {
    const FakeWeightSource source =
        RandomModel({.architecture = architecture, .format = WeightFormat::kQ4_1, .tied = false});
    const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
    ASSERT_TRUE(config.ok()) << config.status();
    const absl::StatusOr<size_t> predicted = WeightsBytes(source, *config, ReferenceKernels());
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    const auto model = Load(source);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(allocator_.allocated_bytes(), *predicted);
    EXPECT_EQ((*model)->weights.bytes.size(), *predicted);
  }
  EXPECT_EQ(allocator_.allocated_bytes(), 0u);
}

TEST_F(WeightsTest, LoadsWithinThePlannedBytesAndNotWithinLess) {
  const FakeWeightSource source = RandomModel({.architecture = "llama"});
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::StatusOr<LoadBytes> planned =
      PlanLoad(source, *config, ReferenceKernels(), pool_->num_threads());
  ASSERT_TRUE(planned.ok()) << planned.status();
  allocator_.set_limit_bytes(planned->weights + planned->staging);
  EXPECT_TRUE(Load(source).ok());
  allocator_.set_limit_bytes(planned->weights + planned->staging - 1);
  EXPECT_EQ(Load(source).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(WeightsTest, PacksAMatrixOfManyPiecesAsTheFileHasIt) {
  // 20,000 rows of 256 bytes are five pieces; the reference packs by copying.
  const FakeWeightSource source =
      RandomModel({.value_format = WeightFormat::kF32, .num_layers = 1, .vocab_size = 20000});
  const auto model = Load(source);
  ASSERT_TRUE(model.ok()) << model.status();
  const TensorInfo* tensor = source.Find("token_embd.weight");
  std::vector<std::byte> expected(tensor->size_bytes);
  ASSERT_TRUE(source.Read(*tensor, 0, tensor->size_bytes, expected.data()).ok());
  EXPECT_EQ(std::memcmp((*model)->weights.embedding.data, expected.data(), expected.size()), 0);
  EXPECT_EQ((*model)->weights.head.data, (*model)->weights.embedding.data);
}

TEST_F(WeightsTest, PartsOfAFusedTensorAreWhereTheirRowsAre) {
  const FakeWeightSource source = RandomModel({.architecture = "phi3"});
  const auto model = Load(source);
  ASSERT_TRUE(model.ok()) << model.status();
  const LayerWeights& layer = (*model)->weights.layers[1];
  const size_t row_bytes = 64 * 2;  // the reference keeps rows of f16
  EXPECT_EQ(layer.q.weight.data, layer.fused_qkv.data);
  EXPECT_EQ(layer.k.weight.data, layer.fused_qkv.data + 128 * row_bytes);
  EXPECT_EQ(layer.v.weight.data, layer.fused_qkv.data + 192 * row_bytes);
  EXPECT_EQ(layer.v.weight.rows, 64);
  EXPECT_EQ(layer.up.weight.data, layer.fused_gate_up.data + 96 * row_bytes);
}

TEST_F(WeightsTest, RefusesPartsAndExpertsThatBeginInsideATile) {
  ExpectRefused(RandomModel({.architecture = "phi3", .ffn_size = 40}),
                absl::StatusCode::kUnimplemented, "blk.0.ffn_up.weight: a part begins at row 40");
  ExpectRefused(RandomModel({.architecture = "qwen3moe", .expert_ffn_size = 40}),
                absl::StatusCode::kUnimplemented, "blk.0.ffn_gate_exps.weight: experts of 40 rows");
}

TEST_F(WeightsTest, NamesATensorOfAnotherShapeAndBothShapes) {
  FakeWeightSource source = RandomModel({});
  source.Add("blk.1.attn_q.weight", WeightFormat::kF16, {128, 32});
  ExpectRefused(source, absl::StatusCode::kInvalidArgument,
                "tensor blk.1.attn_q.weight: expected [128, 64], file has [128, 32]");
}

TEST_F(WeightsTest, NamesTensorAndRowOfAScaleThatIsNan) {
  FakeWeightSource source =
      RandomModel({.architecture = "gpt-oss", .format = WeightFormat::kMXFP4});
  const TensorInfo tensor = *source.Find("blk.1.ffn_down_exps.weight");
  std::vector<uint8_t> bytes(tensor.size_bytes);
  ASSERT_TRUE(source.Read(tensor, 0, bytes.size(), bytes.data()).ok());
  const size_t row_bytes = 64 / 32 * 17;
  bytes[203 * row_bytes + 17] = 0xff;
  source.Add(tensor.name, tensor.format, tensor.shape, std::move(bytes));
  ExpectRefused(source, absl::StatusCode::kInvalidArgument,
                "tensor blk.1.ffn_down_exps.weight: row 203: scale 1 is NaN (the exponent 0xff)");
}

TEST_F(WeightsTest, NamesAMissingTensor) {
  FakeWeightSource source = RandomModel({});
  source.Remove("blk.2.ffn_down.weight");
  ExpectRefused(source, absl::StatusCode::kNotFound, "tensor blk.2.ffn_down.weight: missing");
}

TEST_F(WeightsTest, NamesATensorThatTheArchitectureDoesNotUse) {
  FakeWeightSource source = RandomModel({});
  source.Add("blk.0.attn_sinks.weight", WeightFormat::kF32, {4});
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "tensor blk.0.attn_sinks.weight");
}

TEST_F(WeightsTest, RefusesMoreLayersThanTheFileHas) {
  FakeWeightSource source = RandomModel({});
  source.mutable_metadata().Set("llama.block_count", int64_t{1000});
  ExpectRefused(source, absl::StatusCode::kNotFound, "tensor blk.3.attn_norm.weight");
}

TEST_F(WeightsTest, ReportsDataThatEndsEarly) {
  const FakeWeightSource source = RandomModel({.with_data = false});
  ExpectRefused(source, absl::StatusCode::kDataLoss, "tensor");
}

TEST_F(WeightsTest, ReportsWhatTheAllocatorRefuses) {
  allocator_.set_limit_bytes(1000);
  ExpectRefused(RandomModel({}), absl::StatusCode::kResourceExhausted, "weights");
}

TEST_F(WeightsTest, StopsWhenTheProgressCallbackSaysSo) {
  const FakeWeightSource source = RandomModel({});
  const auto model = LoadModel(source, options(), [](uint64_t done_bytes, uint64_t total_bytes) {
    EXPECT_GT(done_bytes, 0u);
    EXPECT_LE(done_bytes, total_bytes);
    return absl::CancelledError("enough");
  });
  EXPECT_EQ(model.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(allocator_.allocated_bytes(), 0u);
}

TEST_F(WeightsTest, ProgressEndsWithAllBytes) {
  const FakeWeightSource source = RandomModel({});
  uint64_t expected = 0;
  for (const TensorInfo& tensor : source.tensors()) expected += tensor.size_bytes;
  uint64_t done = 0;
  const auto model = LoadModel(source, options(), [&](uint64_t done_bytes, uint64_t total_bytes) {
    EXPECT_EQ(total_bytes, expected);
    done = done_bytes;
    return absl::OkStatus();
  });
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(done, expected);
}

TEST_F(WeightsTest, DividesRopeFrequenciesByTheFactorsOfTheFile) {
  FakeWeightSource source = RandomModel({});
  std::vector<float> factors(16, 4.0f);
  std::vector<uint8_t> bytes(factors.size() * sizeof(float));
  std::memcpy(bytes.data(), factors.data(), bytes.size());
  source.Add("rope_freqs.weight", WeightFormat::kF32, {16}, bytes);
  const auto model = Load(source);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FLOAT_EQ((*model)->config.ropes[0].inv_freq[0], 0.25f);
}

TEST_F(WeightsTest, RefusesRopeFactorsThatAreNotPositive) {
  FakeWeightSource source = RandomModel({});
  source.Add("rope_freqs.weight", WeightFormat::kF32, {16}, std::vector<uint8_t>(64, 0));
  ExpectRefused(source, absl::StatusCode::kInvalidArgument, "rope_freqs.weight: factor 0 is 0");
}

TEST_F(WeightsTest, TakesBiasesWhereTheFileHasThem) {
  FakeWeightSource source = RandomModel({});
  std::vector<float> bias(128, 2.0f);
  std::vector<uint8_t> bytes(bias.size() * sizeof(float));
  std::memcpy(bytes.data(), bias.data(), bytes.size());
  source.Add("blk.1.attn_q.bias", WeightFormat::kF32, {128}, bytes);
  const auto model = Load(source);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->weights.layers[0].q.bias, nullptr);
  ASSERT_NE((*model)->weights.layers[1].q.bias, nullptr);
  EXPECT_EQ((*model)->weights.layers[1].q.bias[127], 2.0f);
}

TEST_F(WeightsTest, RefusesABiasInAnArchitectureWithoutBiases) {
  FakeWeightSource source = RandomModel({.architecture = "gemma3"});
  source.Add("blk.1.attn_q.bias", WeightFormat::kF32, {128}, std::vector<uint8_t>(512, 0));
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "blk.1.attn_q.bias");
}

}  // namespace
}  // namespace llm
