// What a checkpoint in low bits may get wrong: each mistake is a status that names the tensor or
// the key.
#include <cstring>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "tests/golden/checkpoint.h"

namespace llm {
namespace {

using Json = nlohmann::json;
using absl::StatusCode;

const std::string kLayer = "model.layers.0.";
const std::string kQuery = kLayer + "self_attn.q_proj.";

struct Case {
  const char* name;
  const char* checkpoint;
  std::function<void(Checkpoint*)> spoil;
  StatusCode code;
  std::string named;
};

void Reshape(Checkpoint* c, const std::string& tensor, const Json& shape) {
  c->header[tensor]["shape"] = shape;
}
// By zeros of another shape; the old bytes become those of a tensor that nothing reads.
void Replace(Checkpoint* c, const std::string& tensor, const std::vector<int64_t>& shape,
             size_t element_bytes) {
  c->header[kLayer + "self_attn.rotary_emb.inv_freq"] = c->header[tensor];
  const size_t begin = c->data.size();
  for (const int64_t size : shape) element_bytes *= static_cast<size_t>(size);
  c->data.append(element_bytes, '\0');
  c->header[tensor]["shape"] = shape;
  c->header[tensor]["data_offsets"] = {begin, c->data.size()};
}
template <typename T>
void Set(Checkpoint* c, const std::string& tensor, size_t index, T value) {
  std::memcpy(c->Bytes(tensor) + index * sizeof(T), &value, sizeof(value));
}
void SetKey(Checkpoint* c, const char* key, const Json& value) {
  c->config["quantization_config"][key] = value;
}
void SetWeightsKey(Checkpoint* c, const char* key, const Json& value) {
  c->config["quantization_config"]["config_groups"]["group_0"]["weights"][key] = value;
}

std::vector<Case> ShapeCases() {
  const auto reshape = [](const std::string& tensor, const Json& shape) {
    return [=](Checkpoint* c) { Reshape(c, tensor, shape); };
  };
  const std::string scale = kQuery + "weight_scale";
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  return {
      {"awq_scales", "awq_int4_g32", reshape(kQuery + "scales", {256, 8}), kInvalid,
       kQuery + "scales"},
      {"awq_zeros", "awq_int4_g32", reshape(kQuery + "qzeros", {32, 8}), kInvalid,
       kQuery + "qzeros"},
      {"awq_codes", "awq_int4_g32", reshape(kQuery + "qweight", {256 * 32}), kInvalid,
       kQuery + "qweight"},
      {"awq_codes_of_other_outputs", "awq_int4_g32", reshape(kQuery + "qweight", {32, 256}),
       kInvalid, kQuery + "scales"},
      {"groups_that_do_not_divide", "awq_int4_g32",
       [](Checkpoint* c) {
         Replace(c, kQuery + "scales", {7, 256}, 2);
       },
       StatusCode::kUnimplemented, kQuery + "qweight"},
      {"gptq_order", "gptq_int4_sym_g32_descact", reshape(kQuery + "g_idx", {2, 128}), kInvalid,
       kQuery + "g_idx"},
      {"gptq_order_missing", "gptq_int4_sym_g32_descact",
       [](Checkpoint* c) {
         c->header[kLayer + "self_attn.rotary_emb.inv_freq"] = c->header[kQuery + "g_idx"];
         c->header.erase(kQuery + "g_idx");
       },
       kInvalid, kQuery + "g_idx"},
      {"packed_zeros", "ct_w4a16_asym_g32", reshape(kQuery + "weight_zero_point", {8, 32}),
       kInvalid, kQuery + "weight_zero_point"},
      {"packed_scales", "ct_w4a16_asym_g32", reshape(scale, {8, 256}), kInvalid, scale},
      {"f8_channel_scales", "ct_fp8_dynamic_channel", reshape(scale, {128, 2}), kInvalid, scale},
      {"f8_block_scales", "ct_fp8_block", reshape(scale, {4}), kInvalid, scale},
      {"deepseek_scales", "deepseek_fp8_block",
       reshape(kLayer + "mlp.down_proj.weight_scale_inv", {3, 2}), kInvalid,
       "mlp.down_proj.weight_scale_inv"},
      {"mxfp8_scales", "ct_mxfp8_a16", reshape(scale, {8, 256}), kInvalid, scale},
      {"nvfp4_scales", "ct_nvfp4", reshape(scale, {16, 256}), kInvalid, scale},
      {"sparse_masks", "ct_sparse24_bf16", reshape(kQuery + "bitmask", {32, 256}), kInvalid,
       kQuery + "bitmask"},
      {"missing_zeros", "awq_int4_g32",
       [](Checkpoint* c) {
         c->header["model.layers.0.spare"] = c->header[kQuery + "qzeros"];
         c->header.erase(kQuery + "qzeros");
       },
       StatusCode::kNotFound, kQuery + "qzeros"},
  };
}

std::vector<Case> ValueCases() {
  const std::string scale = kQuery + "weight_scale";
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  constexpr StatusCode kUnimplemented = StatusCode::kUnimplemented;
  const auto set_order = [](const std::string& linear, size_t index, int32_t group) {
    return [=](Checkpoint* c) { Set(c, kLayer + linear + ".g_idx", index, group); };
  };
  return {
      {"a_group_that_is_not_there", "gptq_int4_sym_g32_descact",
       set_order("self_attn.q_proj", 3, 99), kInvalid, kQuery + "g_idx"},
      {"a_negative_group", "gptq_int4_asym_g128_descact", set_order("mlp.up_proj", 0, -1), kInvalid,
       "mlp.up_proj.g_idx"},
      {"groups_of_other_sizes", "gptq_int4_asym_g32", set_order("self_attn.o_proj", 0, 7),
       kUnimplemented, "self_attn.o_proj.g_idx"},
      {"another_order_beside_it", "gptq_int4_sym_g32_descact",
       [](Checkpoint* c) {
         const std::string order = kLayer + "self_attn.k_proj.g_idx";
         int32_t first, other;
         std::memcpy(&first, c->Bytes(order), sizeof(first));
         size_t i = 0;
         do {
           ++i;
           std::memcpy(&other, c->Bytes(order) + i * sizeof(other), sizeof(other));
         } while (other == first);
         Set(c, order, 0, other);
         Set(c, order, i, first);
       },
       kUnimplemented, "blk.0.attn_k.order"},
      {"a_zero_point_with_two_readings", "gptq_int4_asym_g32",
       [](Checkpoint* c) { Set(c, kQuery + "qzeros", 5, uint32_t{0xf0000000}); }, kUnimplemented,
       kQuery + "qzeros"},
      {"zero_points_of_a_symmetric_one", "gptq_int4_sym_g128",
       [](Checkpoint* c) { Set(c, kQuery + "qzeros", 5, uint32_t{0x77777778}); }, kUnimplemented,
       kQuery + "qzeros"},
      {"an_f8_nan", "ct_fp8_static_tensor",
       [](Checkpoint* c) { Set(c, kQuery + "weight", 1000, uint8_t{0xff}); }, kInvalid,
       kQuery + "weight"},
      {"an_mxfp8_exponent_nan", "ct_mxfp8_a16",
       [=](Checkpoint* c) { Set(c, scale, 100, uint8_t{0xff}); }, kInvalid,
       scale + ": row 12: scale 4 is NaN"},
      {"an_mxfp4_exponent_nan", "ct_mxfp4_a16",
       [=](Checkpoint* c) { Set(c, scale, 100, uint8_t{0xff}); }, kInvalid,
       scale + ": row 12: scale 4 is NaN"},
      {"an_nvfp4_scale_below_zero", "ct_nvfp4",
       [=](Checkpoint* c) { Set(c, scale, 100, uint8_t{0x81}); }, kInvalid, scale},
      {"an_nvfp4_divisor_of_zero", "ct_nvfp4",
       [](Checkpoint* c) { Set(c, kQuery + "weight_global_scale", 0, 0.0f); }, kInvalid,
       kQuery + "weight_global_scale"},
      {"three_weights_of_four", "ct_sparse24_bf16",
       [](Checkpoint* c) { Set(c, kQuery + "bitmask", 77, uint8_t{0x37}); }, kInvalid,
       kQuery + "bitmask"},
      {"one_weight_and_three", "ct_sparse24_bf16",
       [](Checkpoint* c) { Set(c, kQuery + "bitmask", 77, uint8_t{0x17}); }, kInvalid,
       kQuery + "bitmask"},
      {"another_sparse_shape", "ct_sparse24_bf16",
       [](Checkpoint* c) { Set(c, kQuery + "shape", 1, int64_t{128}); }, kInvalid,
       kQuery + "shape"},
  };
}

std::vector<Case> ConfigCases() {
  const auto key = [](const char* name, const Json& value) {
    return [=](Checkpoint* c) { SetKey(c, name, value); };
  };
  const auto weights = [](const char* name, const Json& value) {
    return [=](Checkpoint* c) { SetWeightsKey(c, name, value); };
  };
  constexpr StatusCode kUnimplemented = StatusCode::kUnimplemented;
  return {
      {"awq_gemv", "awq_int4_g32", key("version", "gemv"), kUnimplemented, "version"},
      {"awq_bits", "awq_int4_g32", key("bits", 8), kUnimplemented, "bits"},
      {"awq_without_zeros", "awq_int4_g32", key("zero_point", false), kUnimplemented, "zero_point"},
      {"gptq_of_3_bits", "gptq_int4_asym_g32", key("bits", 3), kUnimplemented, "bits"},
      {"gptq_marlin", "gptq_int4_sym_g128", key("checkpoint_format", "marlin"), kUnimplemented,
       "checkpoint_format"},
      {"bitsandbytes", "awq_int4_g32", key("quant_method", "bitsandbytes"), kUnimplemented,
       "bitsandbytes"},
      {"hqq", "awq_int4_g32", key("quant_method", "hqq"), kUnimplemented, "hqq"},
      {"modelopt", "ct_nvfp4", key("quant_method", "modelopt"), kUnimplemented, "modelopt"},
      {"marlin_24", "ct_w4a16_sym_g128", key("format", "marlin-24"), kUnimplemented, "marlin-24"},
      {"not_compressed", "ct_w4a16_sym_g128", key("quantization_status", "frozen"), kUnimplemented,
       "quantization_status"},
      {"sparse_low_bits", "ct_w4a16_sym_g128",
       key("sparsity_config", {{"format", "sparse-24-bitmask"}}), kUnimplemented, "config_groups"},
      {"another_sparsity", "ct_sparse24_bf16",
       key("sparsity_config", {{"format", "sparse-bitmask"}}), kUnimplemented, "sparse-bitmask"},
      {"another_strategy", "ct_fp8_dynamic_channel", weights("strategy", "attn_head"),
       kUnimplemented, "strategy"},
      {"another_block", "ct_fp8_block", weights("block_structure", {128, 100}), kUnimplemented,
       "block_structure"},
      {"no_block", "ct_fp8_block", weights("block_structure", {128}), StatusCode::kInvalidArgument,
       "block_structure"},
      {"another_f8", "deepseek_fp8_block", key("fmt", "e5m2"), kUnimplemented, "fmt"},
      {"an_unknown_key", "deepseek_fp8_block", key("rotation", true), kUnimplemented, "rotation"},
      {"an_order_without_its_groups", "ct_w4a16_sym_g128", weights("actorder", "group"),
       StatusCode::kInvalidArgument, "down_proj.weight_g_idx"},
      {"an_older_order_without_its_groups", "ct_w4a16_asym_g32", weights("actorder", true),
       StatusCode::kInvalidArgument, "down_proj.weight_g_idx"},
      {"an_unknown_order", "ct_w4a16_sym_g128", weights("actorder", "random"), kUnimplemented,
       "actorder"},
      {"an_order_of_floats", "ct_nvfp4", weights("actorder", "group"), kUnimplemented, "actorder"},
      {"groups_of_floats", "ct_mxfp8_a16",
       [](Checkpoint* c) {
         const size_t size = c->data.size();
         c->data.append(256 * 4, '\0');
         c->header[kQuery + "weight_g_idx"] = {
             {"dtype", "I32"}, {"shape", {256}}, {"data_offsets", {size, size + 1024}}};
       },
       kUnimplemented, kQuery + "weight_g_idx"},
      {"a_group_of_all_inputs", "ct_w4a16_sym_g128",
       [](Checkpoint* c) {
         const size_t size = c->data.size();
         c->data.append(256 * 4, '\0');
         c->header[kQuery + "weight_g_idx"] = {
             {"dtype", "I32"}, {"shape", {256}}, {"data_offsets", {size, size + 1024}}};
       },
       kUnimplemented, kQuery + "weight_g_idx"},
  };
}

class QuantizedCorruptionTest : public testing::TestWithParam<Case> {};

TEST_P(QuantizedCorruptionTest, IsNamed) {
  const Case& test = GetParam();
  Checkpoint checkpoint(test.checkpoint);
  if (!checkpoint.exists()) GTEST_SKIP() << test.checkpoint << " is not here";
  test.spoil(&checkpoint);
  const absl::Status status = checkpoint.Load();
  EXPECT_EQ(status.code(), test.code) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(test.named));
}

TEST(QuantizedCheckpointTest, HoldsScalesThatNoHalfCan) {
  Checkpoint checkpoint("ct_w8a8_int8");
  if (!checkpoint.exists()) GTEST_SKIP() << "ct_w8a8_int8 is not here";
  const std::string name = kQuery + "weight_scale";
  Replace(&checkpoint, name, {256, 1}, sizeof(float));
  checkpoint.header[name]["dtype"] = "F32";
  for (size_t i = 0; i < 256; ++i) {
    Set(&checkpoint, name, i, 1e-6f * static_cast<float>(i) + 1.2345678e-3f);
  }
  const absl::StatusOr<std::unique_ptr<WeightSource>> source = checkpoint.Open();
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<float> values = Decoded(**source, "blk.0.attn_q.weight");
  ASSERT_EQ(values.size(), size_t{256 * 256});
  const char* codes = checkpoint.Bytes(kQuery + "weight");
  for (size_t i = 0; i < values.size(); ++i) {
    const float scale = 1e-6f * static_cast<float>(i / 256) + 1.2345678e-3f;
    ASSERT_EQ(values[i], static_cast<float>(static_cast<signed char>(codes[i])) * scale) << i;
  }
  EXPECT_TRUE(checkpoint.Load().ok());
}

// No golden has 8 bits with zero points.
TEST(QuantizedCheckpointTest, ZeroPointsThatAreAllInTheMiddleGiveTheSymmetricValues) {
  for (const auto& [name, format] : {std::pair{"gptq_int8_sym_g128", WeightFormat::kQ8_Z},
                                     {"gptq_int4_sym_g32_descact", WeightFormat::kQ4_Z}}) {
    Checkpoint checkpoint(name);
    if (!checkpoint.exists()) GTEST_SKIP() << name << " is not here";
    std::vector<float> values[2];
    for (const bool symmetric : {true, false}) {
      SetKey(&checkpoint, "sym", symmetric);
      const absl::StatusOr<std::unique_ptr<WeightSource>> source = checkpoint.Open();
      ASSERT_TRUE(source.ok()) << source.status();
      const TensorInfo* tensor = (*source)->Find("blk.0.ffn_down.weight");
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->format == format, !symmetric);
      values[symmetric ? 0 : 1] = Decoded(**source, "blk.0.ffn_down.weight");
    }
    EXPECT_EQ(values[0], values[1]) << name;
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& param_info) { return param_info.param.name; }
INSTANTIATE_TEST_SUITE_P(Shapes, QuantizedCorruptionTest, testing::ValuesIn(ShapeCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Values, QuantizedCorruptionTest, testing::ValuesIn(ValueCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Configs, QuantizedCorruptionTest, testing::ValuesIn(ConfigCases()),
                         NameOf);

}  // namespace
}  // namespace llm
