// Scales of fp8 keys and values that come with a checkpoint, under the names that hubs have.
#include "src/model/kv_scales.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/engine/loaded_model.h"
#include "src/runner/runner_options.h"
#include "tests/support/hub_directory.h"

namespace llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void AddScale(const std::string& name, const std::string& dtype, const std::string& bytes,
              HubDirectory* hub) {
  const size_t begin = hub->data.size();
  hub->data += bytes;
  hub->header["model.layers.0.self_attn." + name] = {
      {"dtype", dtype}, {"shape", {1}}, {"data_offsets", {begin, hub->data.size()}}};
  hub->Save();
}

std::string F32(float value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

absl::StatusOr<ModelConfig> Open(const HubDirectory& hub) {
  ModelOptions options;
  options.header_only = true;
  const auto model = LoadedModel::Open(hub.path(), options);
  if (!model.ok()) return model.status();
  return (*model)->model().config;
}

std::string Error(const HubDirectory& hub) { return std::string(Open(hub).status().message()); }

TEST(KvScalesTest, AreReadUnderEachOfTheirNames) {
  const char* const kNames[][2] = {
      {"k_scale", "v_scale"}, {"k_proj.k_scale", "v_proj.v_scale"}, {"kv_scale", "v_scale"}};
  for (const auto& names : kNames) {
    HubDirectory hub;
    AddScale(names[0], "F32", F32(0.25f), &hub);
    AddScale(names[1], "BF16", std::string("\xc0\x3f", 2), &hub);
    const auto config = Open(hub);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_THAT(config->kv_scales.keys, ElementsAre(0.25f));
    EXPECT_THAT(config->kv_scales.values, ElementsAre(1.5f));
  }
}

TEST(KvScalesTest, TakeThePlaceOfTheTokensScalesInFp8Alone) {
  HubDirectory hub;
  const auto without = Open(hub);
  AddScale("k_scale", "F32", F32(1), &hub);
  AddScale("v_scale", "F32", F32(1), &hub);
  const auto with = Open(hub);
  ASSERT_TRUE(without.ok() && with.ok()) << with.status();
  RunnerOptions options;
  for (const DType dtype : {DType::kF16, DType::kI8}) {
    options.kv_dtype = dtype;
    EXPECT_EQ(MakeKvLayout(*with, options).block_bytes(),
              MakeKvLayout(*without, options).block_bytes());
  }
  options.kv_dtype = DType::kF8E4M3;
  EXPECT_EQ(MakeKvLayout(*with, options).block_bytes(), 2 * 16 * 16);
  EXPECT_EQ(MakeKvLayout(*without, options).block_bytes(), 2 * 16 * 16 + 2 * 2 * 16);
}

TEST(KvScalesTest, ThatAreIncompleteOrNoScalesAreRefusedByName) {
  HubDirectory one;
  AddScale("k_scale", "F32", F32(1), &one);
  EXPECT_THAT(Error(one), HasSubstr("self_attn.v_scale: missing"));
  for (const float scale : {0.0f, -1.0f, NAN, HUGE_VALF}) {
    HubDirectory hub;
    AddScale("k_scale", "F32", F32(scale), &hub);
    AddScale("v_scale", "F32", F32(1), &hub);
    EXPECT_EQ(Open(hub).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Error(hub), HasSubstr("tensor model.layers.0.self_attn.k_scale of"));
  }
  HubDirectory wide;
  AddScale("k_scale", "F32", F32(1), &wide);
  AddScale("v_scale", "I32", F32(1), &wide);
  EXPECT_EQ(Open(wide).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(KvScalesTest, SchemesOtherThanFp8WithAScaleATensorAreRefusedByName) {
  HubDirectory hub;
  hub.config["quantization_config"] = {
      {"quant_method", "compressed-tensors"},
      {"format", "pack-quantized"},
      {"config_groups",
       {{"group_0",
         {{"targets", {"Linear"}},
          {"weights", {{"num_bits", 4}, {"type", "int"}, {"symmetric", true}}}}}}},
      {"kv_cache_scheme",
       {{"num_bits", 8},
        {"type", "float"},
        {"strategy", "tensor"},
        {"dynamic", false},
        {"symmetric", true}}}};
  AddScale("k_scale", "F32", F32(1), &hub);
  AddScale("v_scale", "F32", F32(1), &hub);
  EXPECT_TRUE(Open(hub).ok()) << Open(hub).status();
  hub.config["quantization_config"]["kv_cache_scheme"]["type"] = "int";
  hub.Save();
  EXPECT_EQ(Open(hub).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Error(hub), HasSubstr("kv_cache_scheme: key type"));
}

}  // namespace
}  // namespace llm
