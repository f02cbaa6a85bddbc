// E4M3 weights that are more than one matrix: heads of latent attention, experts.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/loader/safetensors_set.h"
#include "src/model/hub_tensors.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

// Codes [rows, cols] under `name`.weight, scales for blocks under `name`.weight_scale_inv.
struct Weight {
  Weight(std::string stem, int64_t num_rows, int64_t num_cols, int64_t rows_of_block,
         int64_t cols_of_block, uint32_t seed)
      : name(std::move(stem)),
        rows(num_rows),
        cols(num_cols),
        block_rows(rows_of_block),
        block_cols(cols_of_block) {
    std::mt19937 random(seed);
    codes.resize(static_cast<size_t>(rows * cols));
    for (char& code : codes) {
      do {
        code = static_cast<char>(random());
      } while ((code & 0x7f) == 0x7f);
    }
    scales.resize(static_cast<size_t>(rows / block_rows * (cols / block_cols)));
    for (float& scale : scales) scale = std::uniform_real_distribution<float>(0.1f, 1)(random);
    codes_file = MemoryModelFile(codes.data(), codes.size(), "codes");
    scales_file = MemoryModelFile(scales.data(), scales.size() * sizeof(float), "scales");
  }

  void AddTo(SafetensorsSet* set) const {
    SafeTensor weight = {.name = name + ".weight",
                         .type = SafeType::kF8E4M3,
                         .shape = {rows, cols},
                         .file = codes_file.get(),
                         .offset = 0,
                         .size_bytes = codes.size()};
    SafeTensor scale = {.name = name + ".weight_scale_inv",
                        .type = SafeType::kF32,
                        .shape = {rows / block_rows, cols / block_cols},
                        .file = scales_file.get(),
                        .offset = 0,
                        .size_bytes = scales.size() * sizeof(float)};
    set->tensors[weight.name] = weight;
    set->tensors[scale.name] = scale;
  }

  float At(int64_t row, int64_t col) const {
    const float scale =
        scales[static_cast<size_t>(row / block_rows * (cols / block_cols) + col / block_cols)];
    return F8E4M3ToF32(static_cast<uint8_t>(codes[static_cast<size_t>(row * cols + col)])) * scale;
  }

  std::string name;
  int64_t rows, cols, block_rows, block_cols;
  std::string codes;
  std::vector<float> scales;
  std::unique_ptr<ModelFile> codes_file;
  std::unique_ptr<ModelFile> scales_file;
};

HubExtras Extras(const Weight& weight) {
  HubExtras extras;
  extras.tied_embeddings = true;
  extras.num_layers = 1;
  extras.quantization = HubQuantization::kF8;
  extras.block_rows = weight.block_rows;
  extras.block_cols = weight.block_cols;
  return extras;
}

std::vector<float> Decoded(const HubTensorParts& tensor) {
  std::string bytes(tensor.size_bytes, '\0');
  for (const FilePart& part : tensor.parts) {
    // In two reads, the first of no whole rows.
    const uint64_t half = part.size_bytes / 2 + 3;
    const absl::Status first = part.derived->Read(0, half, &bytes[part.begin]);
    const absl::Status second =
        part.derived->Read(half, part.size_bytes - half, &bytes[part.begin + half]);
    EXPECT_TRUE(first.ok() && second.ok()) << first << second;
  }
  const WeightFormatInfo& info = GetWeightFormat(tensor.format);
  std::vector<float> values(bytes.size() / static_cast<size_t>(info.block_bytes) *
                            static_cast<size_t>(info.block_size));
  info.decode(bytes.data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

const HubTensorParts* Find(const std::vector<HubTensorParts>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const HubTensorParts& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

TEST(HubF8Test, TakesKeysAndValuesOutOfTheirHeads) {
  const int64_t kHeads = 3, kKeys = 64, kValues = 128, kInputs = 192;
  const Weight weight("model.layers.0.self_attn.kv_b_proj", kHeads * (kKeys + kValues), kInputs,
                      /*rows_of_block=*/64, /*cols_of_block=*/64, 7);
  SafetensorsSet set;
  weight.AddTo(&set);
  HubExtras extras = Extras(weight);
  extras.key_rows = kKeys;
  extras.value_rows = kValues;
  const auto tensors = MapHubTensors(*FindHubModel("deepseek_v3"), extras, set);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  const HubTensorParts* keys = Find(*tensors, "blk.0.attn_k_b.weight");
  const HubTensorParts* values = Find(*tensors, "blk.0.attn_v_b.weight");
  ASSERT_TRUE(keys != nullptr && values != nullptr);
  EXPECT_EQ(keys->shape, (std::vector<int64_t>{kHeads, kInputs, kKeys}));
  EXPECT_EQ(values->shape, (std::vector<int64_t>{kHeads, kValues, kInputs}));
  const std::vector<float> k = Decoded(*keys);
  const std::vector<float> v = Decoded(*values);
  size_t next_k = 0, next_v = 0;
  for (int64_t head = 0; head < kHeads; ++head) {
    const int64_t begin = head * (kKeys + kValues);
    for (int64_t input = 0; input < kInputs; ++input) {
      for (int64_t key = 0; key < kKeys; ++key)
        ASSERT_EQ(k[next_k++], weight.At(begin + key, input)) << head << input << key;
    }
    for (int64_t row = 0; row < kValues; ++row) {
      for (int64_t input = 0; input < kInputs; ++input)
        ASSERT_EQ(v[next_v++], weight.At(begin + kKeys + row, input)) << head << input << row;
    }
  }
}

TEST(HubF8Test, RefusesKeysOfWhichOneBlockWouldHaveTwoScales) {
  const Weight weight("model.layers.0.self_attn.kv_b_proj", 2 * 96, 64, 32, 64, 7);
  SafetensorsSet set;
  weight.AddTo(&set);
  HubExtras extras = Extras(weight);
  extras.key_rows = 64;
  extras.value_rows = 32;
  const absl::Status status = MapHubTensors(*FindHubModel("deepseek_v3"), extras, set).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_NE(status.message().find("kv_b_proj.weight"), absl::string_view::npos) << status;
}

TEST(HubF8Test, JoinsExpertsInTheirLowBits) {
  const std::string stem = "model.layers.0.block_sparse_moe.experts.";
  const Weight first(stem + "0.w1", 128, 64, 128, 64, 1);
  const Weight second(stem + "1.w1", 128, 64, 128, 64, 2);
  SafetensorsSet set;
  first.AddTo(&set);
  second.AddTo(&set);
  const auto tensors = MapHubTensors(*FindHubModel("mixtral"), Extras(first), set);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  const HubTensorParts* experts = Find(*tensors, "blk.0.ffn_gate_exps.weight");
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->format, WeightFormat::kF8_E4M3);
  EXPECT_EQ(experts->shape, (std::vector<int64_t>{2, 128, 64}));
  const std::vector<float> values = Decoded(*experts);
  for (int64_t row = 0; row < 2 * 128; ++row) {
    const Weight& expert = row < 128 ? first : second;
    for (int64_t col = 0; col < 64; ++col)
      ASSERT_EQ(values[static_cast<size_t>(row * 64 + col)], expert.At(row % 128, col));
  }
}

}  // namespace
}  // namespace llm
