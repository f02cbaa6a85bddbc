// Metadata becomes a config, or a status that names the key.
#include "src/model/model_config.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference.h"
#include "src/model/weights.h"
#include "tests/support/random_model.h"

namespace llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FakeWeightSource Header(const std::string& architecture) {
  return RandomModel({.architecture = architecture, .with_data = false});
}

void ExpectRefused(const WeightSource& source, absl::StatusCode code, const std::string& message) {
  const absl::Status status = ReadModelConfig(source).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(ModelConfigTest, ReadsTheSizesOfALlama) {
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(Header("llama"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->num_layers, 3);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->num_heads, 4);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->vocab_size, 160);
  EXPECT_EQ(config->context_length, 1024);
  EXPECT_FLOAT_EQ(config->attention_scale, 1.0f / std::sqrt(32.0f));
  EXPECT_EQ(config->rope_pairs, RopePairs::kAdjacent);
  EXPECT_TRUE(config->tied_embeddings);
  ASSERT_EQ(config->kv_groups.size(), 1u);
  EXPECT_EQ(config->kv_groups[0].window, 0);
  EXPECT_THAT(config->kv_groups[0].layers, ElementsAre(0, 1, 2));
}

TEST(ModelConfigTest, GivesGemma3AGroupOfWindowsAndTwoRopes) {
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(Header("gemma3"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->qk_norm);
  EXPECT_TRUE(config->post_norms);
  EXPECT_FLOAT_EQ(config->embedding_scale, 8.0f);
  EXPECT_EQ(config->activation, GateActivation::kGeluTanh);
  ASSERT_EQ(config->kv_groups.size(), 2u);
  EXPECT_EQ(config->kv_groups[0].window, 0);
  EXPECT_THAT(config->kv_groups[0].layers, ElementsAre(2));
  EXPECT_EQ(config->kv_groups[1].window, 24);
  EXPECT_THAT(config->kv_groups[1].layers, ElementsAre(0, 1));
  EXPECT_EQ(config->layers[0].rope, 1);
  EXPECT_EQ(config->layers[2].rope, 0);
}

TEST(ModelConfigTest, TakesEverySixthLayerOfGemma3AsGlobalWhenTheFileDoesNotSay) {
  FakeWeightSource source =
      RandomModel({.architecture = "gemma3", .num_layers = 7, .with_data = false});
  source.mutable_metadata().Erase("gemma3.attention.sliding_window_pattern");
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->kv_groups[0].layers, ElementsAre(5));
  EXPECT_THAT(config->kv_groups[1].layers, ElementsAre(0, 1, 2, 3, 4, 6));
}

TEST(ModelConfigTest, StretchesOnlyTheGlobalLayersOfAScaledGemma3) {
  FakeWeightSource source = Header("gemma3");
  source.mutable_metadata().Set("gemma3.rope.scaling.type", std::string("linear"));
  source.mutable_metadata().Set("gemma3.rope.scaling.factor", 8.0);
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FLOAT_EQ(config->ropes[0].inv_freq[0], 0.125f);
  EXPECT_FLOAT_EQ(config->ropes[1].inv_freq[0], 1.0f);
}

TEST(ModelConfigTest, TakesWindowsFromANumberOrLayerByLayer) {
  FakeWeightSource source = Header("gpt-oss");
  const auto windows = [&] {
    const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
    EXPECT_TRUE(config.ok()) << config.status();
    std::vector<int> result;
    for (size_t i = 0; config.ok() && i < 3; ++i) result.push_back(config->layers[i].window);
    return result;
  };
  FakeMetadata& metadata = source.mutable_metadata();
  EXPECT_THAT(windows(), ElementsAre(24, 0, 24));
  metadata.Set("gpt-oss.attention.sliding_window_pattern", int64_t{3});
  EXPECT_THAT(windows(), ElementsAre(24, 24, 0));
  metadata.Set("gpt-oss.attention.sliding_window_pattern", std::vector<int64_t>{0, 1, 1});
  EXPECT_THAT(windows(), ElementsAre(0, 24, 24));
  metadata.Set("gpt-oss.attention.sliding_window_pattern", std::vector<int64_t>{0, 1});
  ExpectRefused(source, absl::StatusCode::kInvalidArgument, "2 flags for 3 layers");
}

TEST(ModelConfigTest, GivesAllLayersOfALlamaItsWindowWhereItHasOne) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.attention.sliding_window", int64_t{40});
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->kv_groups.size(), 1u);
  EXPECT_EQ(config->kv_groups[0].window, 40);
}

TEST(ModelConfigTest, DescribesTheLatentAttentionOfDeepseek) {
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(Header("deepseek2"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->latent.rank, 32);
  EXPECT_EQ(config->latent.key_dim, 16);
  EXPECT_EQ(config->rope_dim, 8);
  EXPECT_EQ(config->num_kv_heads, 1);
  EXPECT_EQ(config->head_dim, 48);  // 40 in whole registers
  EXPECT_FLOAT_EQ(config->attention_scale, 1.0f / std::sqrt(24.0f));
  EXPECT_FALSE(config->layers[0].experts);
  EXPECT_TRUE(config->layers[1].experts);
  EXPECT_EQ(config->experts.shared_ffn_size, 64);
  EXPECT_EQ(config->experts.router.score, RouterScore::kSigmoid);
  EXPECT_EQ(config->experts.router.groups_per_token, 2);
}

TEST(ModelConfigTest, RefusesWhatContradictsLatentAttentionByName) {
  const auto refused = [](const char* key, int64_t value, absl::StatusCode code) {
    FakeWeightSource source = Header("deepseek2");
    source.mutable_metadata().Set(std::string("deepseek2.") + key, value);
    ExpectRefused(source, code, key);
  };
  refused("attention.head_count_kv", 4, absl::StatusCode::kUnimplemented);
  refused("attention.key_length", 24, absl::StatusCode::kUnimplemented);
  refused("attention.key_length_mla", 8, absl::StatusCode::kInvalidArgument);
  refused("expert_gating_func", 4, absl::StatusCode::kUnimplemented);
  refused("attention.indexer.head_count", 4, absl::StatusCode::kUnimplemented);
  FakeWeightSource source = Header("deepseek2");
  source.mutable_metadata().Set("deepseek2.attention.kv_lora_rank", int64_t{640});
  source.mutable_metadata().Set("deepseek2.attention.key_length", int64_t{648});
  source.mutable_metadata().Set("deepseek2.attention.value_length", int64_t{640});
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "head_dim 656");
}

TEST(ModelConfigTest, KeepsYarnWholeUnlessTheFamilyOrAKeySaysOtherwise) {
  const auto frequencies = [](const std::string& architecture, int truncate) {
    FakeWeightSource source = Header(architecture);
    const auto set = [&](const char* key, FakeMetadata::Value value) {
      source.mutable_metadata().Set(architecture + ".rope.scaling." + key, std::move(value));
    };
    set("type", std::string("yarn"));
    set("factor", 32.0);
    set("original_context_length", int64_t{64});
    if (truncate >= 0) set("yarn_truncate", truncate != 0);
    const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->ropes[0].inv_freq : std::vector<float>();
  };
  EXPECT_EQ(frequencies("llama", -1), frequencies("llama", 1));
  EXPECT_EQ(frequencies("gpt-oss", -1), frequencies("gpt-oss", 0));
  EXPECT_NE(frequencies("llama", 0), frequencies("llama", 1));
}

TEST(ModelConfigTest, ComputesRopeFrequenciesFromTheBase) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.rope.freq_base", 500000.0);
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->ropes[0].inv_freq.size(), 16u);
  EXPECT_FLOAT_EQ(config->ropes[0].inv_freq[0], 1.0f);
  EXPECT_FLOAT_EQ(config->ropes[0].inv_freq[8], static_cast<float>(std::pow(500000.0, -0.5)));
}

TEST(ModelConfigTest, RefusesAnArchitectureItDoesNotKnowByName) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("general.architecture", std::string("mamba"));
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "\"mamba\"");
}

TEST(ModelConfigTest, RefusesAnUnknownKeyOfTheArchitectureByName) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.attention.clamp_kqv", 8.0);
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "llama.attention.clamp_kqv");
}

TEST(ModelConfigTest, RefusesRopeScalingThatItCannotComputeByName) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.rope.scaling.type", std::string("dynamic"));
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "llama.rope.scaling.type: \"dynamic\"");
}

TEST(ModelConfigTest, RefusesLongropeWithoutFactorsAndFactorsThatNothingReads) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.rope.scaling.type", std::string("longrope"));
  source.mutable_metadata().Set("llama.rope.scaling.original_context_length", int64_t{64});
  ExpectRefused(source, absl::StatusCode::kNotFound, "rope_factors_long.weight: missing");
  source.Add("rope_factors_long.weight", WeightFormat::kF32, {16});
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::Status status = WeightsBytes(source, *config, ReferenceKernels()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rope_factors_long.weight: not used"));
}

TEST(ModelConfigTest, RefusesMoreExpertsATokenThanThereAre) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.expert_count", int64_t{8});
  source.mutable_metadata().Set("llama.expert_used_count", int64_t{9});
  ExpectRefused(source, absl::StatusCode::kInvalidArgument, "9 experts a token");
  source.mutable_metadata().Set("llama.expert_used_count", int64_t{2});
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(source);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->experts.router.num_experts, 8);
  EXPECT_TRUE(config->experts.router.normalize);
  EXPECT_TRUE(config->layers[0].experts);
}

TEST(ModelConfigTest, RefusesASplitModel) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("split.count", int64_t{3});
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "split.count");
}

TEST(ModelConfigTest, NamesAMissingKey) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Erase("llama.block_count");
  ExpectRefused(source, absl::StatusCode::kNotFound, "llama.block_count");
}

TEST(ModelConfigTest, NamesAKeyOfAnotherType) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.block_count", std::string("three"));
  ExpectRefused(source, absl::StatusCode::kInvalidArgument, "llama.block_count");
}

TEST(ModelConfigTest, RefusesImpossibleSizes) {
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    for (const char* key :
         {"block_count", "embedding_length", "attention.head_count", "context_length",
          "feed_forward_length", "attention.key_length", "rope.dimension_count"}) {
      FakeWeightSource source = Header("llama");
      source.mutable_metadata().Set(std::string("llama.") + key, bad);
      ExpectRefused(source, absl::StatusCode::kInvalidArgument, key);
    }
  }
}

TEST(ModelConfigTest, RefusesNumbersThatAreNotFinite) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    FakeWeightSource source = Header("llama");
    source.mutable_metadata().Set("llama.rope.freq_base", bad);
    ExpectRefused(source, absl::StatusCode::kInvalidArgument, "llama.rope.freq_base");
  }
}

TEST(ModelConfigTest, RefusesKvHeadsThatDoNotDivideTheHeads) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.attention.head_count_kv", int64_t{3});
  ExpectRefused(source, absl::StatusCode::kInvalidArgument, "3 kv heads do not divide 4 heads");
}

TEST(ModelConfigTest, RefusesAHeadDimOfNoWholeTiles) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.attention.key_length", int64_t{24});
  source.mutable_metadata().Set("llama.attention.value_length", int64_t{24});
  ExpectRefused(source, absl::StatusCode::kUnimplemented, "head_dim 24");
}

TEST(ModelConfigTest, RefusesAVocabularyThatTheTableContradicts) {
  FakeWeightSource source = Header("llama");
  source.mutable_metadata().Set("llama.vocab_size", int64_t{161});
  ExpectRefused(source, absl::StatusCode::kInvalidArgument, "llama.vocab_size: 161");
}

}  // namespace
}  // namespace llm
