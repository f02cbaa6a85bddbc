// Inputs in an order of their groups (GPTQ's desc_act, compressed-tensors' actorder) wherever
// layers may have them: a checkpoint with a golden, written as other families write their layers,
// has the same logits.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "src/tensor/float_convert.h"
#include "tests/golden/checkpoint.h"

namespace llm {
namespace {

using Tensors = std::map<std::string, HeldTensor>;

const std::string kLayer = "model.layers.0.";
constexpr const char* kParts[] = {"qweight", "qzeros", "scales", "g_idx"};
constexpr size_t kWordInputs = 8;  // in a word of codes

// [rows, a] and [rows, b] become [rows, a + b].
HeldTensor Beside(const HeldTensor& a, const HeldTensor& b) {
  HeldTensor joined = a;
  joined.bytes.clear();
  joined.shape[1] += b.shape[1];
  const auto rows = static_cast<size_t>(a.shape[0]);
  for (size_t row = 0; row < rows; ++row) {
    for (const HeldTensor* part : {&a, &b}) {
      const size_t row_bytes = part->bytes.size() / rows;
      joined.bytes += part->bytes.substr(row * row_bytes, row_bytes);
    }
  }
  return joined;
}

// The outputs of some layers that read one input become those of one.
void Fuse(const std::vector<std::string>& layers, const std::string& fused, Tensors* tensors) {
  for (const char* part : kParts) {
    HeldTensor joined = (*tensors)[kLayer + layers[0] + part];
    for (size_t i = 1; i < layers.size() && joined.shape.size() > 1; ++i) {
      joined = Beside(joined, (*tensors)[kLayer + layers[i] + part]);
    }
    for (const std::string& layer : layers) tensors->erase(kLayer + layer + part);
    (*tensors)[kLayer + fused + part] = joined;
  }
}

// Elements of each row move on by `count`, the last ones to the front.
void Rotate(size_t count, size_t element_bytes, HeldTensor* tensor) {
  const size_t rows = tensor->shape.size() > 1 ? static_cast<size_t>(tensor->shape[0]) : 1;
  const size_t row_bytes = tensor->bytes.size() / rows;
  for (auto row = tensor->bytes.begin(); row != tensor->bytes.end();) {
    const auto end = row + static_cast<std::ptrdiff_t>(row_bytes);
    std::rotate(row, end - static_cast<std::ptrdiff_t>(count * element_bytes), end);
    row = end;
  }
}

// Expert `index` is the dense network with its inner elements moved on by `moved` words.
void AddExpert(int index, size_t moved, const Tensors& dense, Tensors* tensors) {
  const std::string expert = kLayer + "block_sparse_moe.experts." + std::to_string(index) + ".";
  for (const char* part : kParts) {
    const std::string name = part;
    HeldTensor gate = dense.at(kLayer + "mlp.gate_proj." + name);
    HeldTensor up = dense.at(kLayer + "mlp.up_proj." + name);
    HeldTensor down = dense.at(kLayer + "mlp.down_proj." + name);
    for (HeldTensor* tensor : {&gate, &up}) {
      if (name == "qweight") Rotate(moved * kWordInputs, sizeof(uint32_t), tensor);
      if (name == "scales") Rotate(moved * kWordInputs, sizeof(uint16_t), tensor);
    }
    if (name == "g_idx") Rotate(moved * kWordInputs, sizeof(int32_t), &down);
    if (name == "qweight") {  // whole rows
      const auto row_bytes = static_cast<std::ptrdiff_t>(down.shape[1]) * 4;
      std::rotate(down.bytes.begin(),
                  down.bytes.end() - static_cast<std::ptrdiff_t>(moved) * row_bytes,
                  down.bytes.end());
    }
    (*tensors)[expert + "w1." + name] = gate;
    (*tensors)[expert + "w3." + name] = up;
    (*tensors)[expert + "w2." + name] = down;
  }
}

class QuantizedOrdersTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string golden = INLAY_SHARED_DATA "/quant/gptq_int4_sym_g32_descact/golden.json";
    if (!checkpoint_.exists()) GTEST_SKIP() << golden << " is not here";
    golden_ = ReadJson(golden);
    tensors_ = checkpoint_.Take();
  }

  void ExpectGoldenLogits() {
    checkpoint_.Put(tensors_);
    const auto source = checkpoint_.Open();
    ASSERT_TRUE(source.ok()) << source.status();
    for (const KernelTable* kernels : AvailableKernels()) {
      SCOPED_TRACE(kernels->name);
      auto harness = ModelHarness::Create(**source, {.kernels = kernels, .num_threads = 2});
      ASSERT_TRUE(harness.ok()) << harness.status();
      auto rounded = ModelHarness::Create(
          **source, {.kernels = kernels, .num_threads = 2, .float_activations = false});
      ASSERT_TRUE(rounded.ok()) << rounded.status();
      for (const nlohmann::json& prompt : golden_["prompts"]) {
        CheckPrompt(golden_, prompt, harness->get());
        const auto last = (*rounded)->LastLogits(prompt["ids"].get<std::vector<int32_t>>());
        ASSERT_TRUE(last.ok()) << last.status();
        for (size_t i = 0; i < last->size(); ++i) {
          ASSERT_NEAR((*last)[i], prompt["last_logits"][i].get<double>(), Int8Tolerance(prompt, 1));
        }
      }
    }
  }

  Checkpoint checkpoint_{"gptq_int4_sym_g32_descact"};
  nlohmann::json golden_;
  Tensors tensors_;
};

TEST_F(QuantizedOrdersTest, FusedLayersHaveTheOrderOfAllTheirParts) {
  Fuse({"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}, "self_attn.qkv_proj.",
       &tensors_);
  Fuse({"mlp.gate_proj.", "mlp.up_proj."}, "mlp.gate_up_proj.", &tensors_);
  checkpoint_.config["model_type"] = "phi3";
  checkpoint_.config.erase("mlp_bias");
  ExpectGoldenLogits();
}

class QuantizedExpertOrdersTest : public QuantizedOrdersTest {
 protected:
  // Two experts that compute the same share the weight of each token, whichever they are.
  void SetUp() override {
    QuantizedOrdersTest::SetUp();
    if (IsSkipped()) return;
    for (int i = 0; i < 3; ++i) AddExpert(i, static_cast<size_t>(i) * 5, tensors_, &tensors_);
    std::erase_if(tensors_,
                  [](const auto& named) { return named.first.find(".mlp.") != std::string::npos; });
    // Tokens go to different experts.
    HeldTensor router = {"F32", {3, 256}, std::string(3 * 256 * sizeof(float), '\0')};
    for (size_t i = 0; i < 3; ++i) {
      const float weight = i == 1 ? -1.0f : 1.0f;
      std::memcpy(&router.bytes[(i * 256 + 7 * i) * sizeof(float)], &weight, sizeof(weight));
    }
    tensors_[kLayer + "block_sparse_moe.gate.weight"] = router;
    checkpoint_.config["model_type"] = "mixtral";
    checkpoint_.config["num_local_experts"] = 3;
    checkpoint_.config["num_experts_per_tok"] = 2;
  }
};

TEST_F(QuantizedExpertOrdersTest, EachExpertHasItsOwnOrder) { ExpectGoldenLogits(); }

TEST_F(QuantizedExpertOrdersTest, AnExpertInOrderStandsBesideOthers) {
  // Expert 1 with the inputs of w2 sorted by group, as another checkpoint would have them.
  const std::string prefix = kLayer + "block_sparse_moe.experts.1.w2.";
  HeldTensor& groups = tensors_[prefix + "g_idx"];
  for (int32_t i = 0; i < 384; ++i) {
    const int32_t group = i / 32;
    std::memcpy(&groups.bytes[static_cast<size_t>(i) * sizeof(group)], &group, sizeof(group));
  }
  checkpoint_.Put(tensors_);
  const auto source = checkpoint_.Open();
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<float> order = Decoded(**source, "blk.0.ffn_down_exps.order");
  ASSERT_EQ(order.size(), size_t{3 * 384});
  for (size_t i = 0; i < 384; ++i) EXPECT_EQ(order[384 + i], static_cast<float>(i));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.begin() + 384));
  EXPECT_TRUE(checkpoint_.Load().ok());
}

TEST_F(QuantizedExpertOrdersTest, GateAndUpOfAnExpertReadOneOrder) {
  Rotate(1, sizeof(int32_t), &tensors_[kLayer + "block_sparse_moe.experts.2.w3.g_idx"]);
  checkpoint_.Put(tensors_);
  const absl::Status status = checkpoint_.Load();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("blk.0.ffn_up_exps.order: is not that of ffn_gate_exps"));
}

HeldTensor GroupsOfInputs(const std::vector<int32_t>& groups) {
  HeldTensor tensor = {"I32", {static_cast<int64_t>(groups.size())}, ""};
  tensor.bytes.assign(reinterpret_cast<const char*>(groups.data()),
                      groups.size() * sizeof(int32_t));
  return tensor;
}

// compressed-tensors keeps the inputs where they are and says the group of each.
TEST(CompressedOrderTest, EachInputIsScaledByItsGroup) {
  Checkpoint checkpoint("ct_w4a16_sym_g128");
  if (!checkpoint.exists()) GTEST_SKIP() << "ct_w4a16_sym_g128 is not here";
  const auto plain = checkpoint.Open();
  ASSERT_TRUE(plain.ok()) << plain.status();
  const std::vector<float> in_order = Decoded(**plain, "blk.0.attn_q.weight");
  Tensors tensors = checkpoint.Take();
  for (const auto& [name, packed] : checkpoint.Take()) {
    if (!absl::EndsWith(name, "weight_packed")) continue;
    std::vector<int32_t> groups(static_cast<size_t>(packed.shape[1] * 8));
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int32_t>(i / 128);
    tensors[name.substr(0, name.rfind('_')) + "_g_idx"] = GroupsOfInputs(groups);
  }
  const std::string stem = kLayer + "self_attn.q_proj.";
  std::vector<int32_t> groups(256);
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = i % 2 == 0 ? 1 : 0;
  tensors[stem + "weight_g_idx"] = GroupsOfInputs(groups);
  checkpoint.Put(tensors);
  checkpoint.config["quantization_config"]["config_groups"]["group_0"]["weights"]["actorder"] =
      "group";
  const auto source = checkpoint.Open();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->Find("blk.0.attn_k.order"), nullptr);
  const std::vector<float> values = Decoded(**source, "blk.0.attn_q.weight");
  const std::vector<float> order = Decoded(**source, "blk.0.attn_q.order");
  ASSERT_EQ(order.size(), 256u);
  const HeldTensor& scales = tensors[stem + "weight_scale"];
  const auto scale = [&](size_t row, size_t group) {
    uint16_t bits;
    std::memcpy(&bits, &scales.bytes[(row * 2 + group) * sizeof(bits)], sizeof(bits));
    return scales.dtype == "BF16" ? BF16ToF32(bits) : F16ToF32(bits);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / 256, input = static_cast<size_t>(order[i % 256]);
    EXPECT_EQ(groups[input], static_cast<int32_t>(i % 256 / 128));
    const float code = std::round(in_order[row * 256 + input] / scale(row, input / 128));
    ASSERT_EQ(values[i], code * scale(row, static_cast<size_t>(groups[input]))) << i;
  }
}

}  // namespace
}  // namespace llm
