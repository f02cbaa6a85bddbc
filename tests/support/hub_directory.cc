// 256 byte tokens and two merges; weights are zeros, since no test here computes.
#include "tests/support/hub_directory.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace llm {
namespace {

using Json = nlohmann::json;

constexpr int kHidden = 32;
constexpr int kFfn = 48;
constexpr int kTokens = 260;

// The character that stands for a byte in the byte alphabet.
std::string ByteCharacter(int byte) {
  const bool itself =
      (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  int code = byte;
  if (!itself) {
    code = 0x100;
    for (int b = 0; b < byte; ++b) {
      const bool moved = !((b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE);
      code += moved ? 1 : 0;
    }
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

Json TinyTokenizer() {
  Json vocab = {{"<|bos|>", 0}, {"<|eos|>", 1}};
  for (int byte = 0; byte < 256; ++byte) vocab[ByteCharacter(byte)] = byte + 2;
  vocab["he"] = 258;
  vocab["hel"] = 259;
  const auto added = [](int id, const char* text) {
    return Json{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", {added(0, "<|bos|>"), added(1, "<|eos|>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocab},
            {"merges", Json::array({"h e", "he l"})}}}};
}

Json TinyConfig() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", kHidden},
          {"intermediate_size", kFfn},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 16},
          {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}},
          {"max_position_embeddings", 64},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", false},
          {"vocab_size", kTokens},
          {"torch_dtype", "bfloat16"},
          {"eos_token_id", 1}};
}

std::string NewPath() {
  static std::atomic<int> count{0};
  return testing::TempDir() + "/hub_" + std::to_string(getpid()) + "_" + std::to_string(count++);
}

}  // namespace

std::string SafetensorsBytes(const nlohmann::json& header, const std::string& data) {
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  return bytes + text + data;
}

void HubDirectory::AddTensor(const std::string& name, std::vector<int64_t> shape) {
  size_t bytes = 2;
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  header[name] = {
      {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + bytes}}};
  data.resize(data.size() + bytes);
}

HubDirectory::HubDirectory()
    : config(TinyConfig()),
      tokenizer(TinyTokenizer()),
      tokenizer_config({{"bos_token", "<|bos|>"},
                        {"eos_token", {{"content", "<|eos|>"}}},
                        {"chat_template", "{{ messages[0].content }}"}}),
      path_(NewPath()) {
  const std::string layer = "model.layers.0.";
  AddTensor("model.embed_tokens.weight", {kTokens, kHidden});
  AddTensor("lm_head.weight", {kTokens, kHidden});
  AddTensor("model.norm.weight", {kHidden});
  AddTensor(layer + "input_layernorm.weight", {kHidden});
  AddTensor(layer + "post_attention_layernorm.weight", {kHidden});
  AddTensor(layer + "self_attn.q_proj.weight", {32, kHidden});
  AddTensor(layer + "self_attn.k_proj.weight", {16, kHidden});
  AddTensor(layer + "self_attn.v_proj.weight", {16, kHidden});
  AddTensor(layer + "self_attn.o_proj.weight", {kHidden, 32});
  AddTensor(layer + "mlp.gate_proj.weight", {kFfn, kHidden});
  AddTensor(layer + "mlp.up_proj.weight", {kFfn, kHidden});
  AddTensor(layer + "mlp.down_proj.weight", {kHidden, kFfn});
  std::filesystem::remove_all(path_);
  std::filesystem::create_directory(path_);
  Save();
}

HubDirectory::~HubDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void HubDirectory::Write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
}

void HubDirectory::Remove(const std::string& name) const {
  std::filesystem::remove(path_ + "/" + name);
}

void HubDirectory::Save() const {
  WriteJson("config.json", config);
  WriteJson("tokenizer.json", tokenizer);
  WriteJson("tokenizer_config.json", tokenizer_config);
  Write("model.safetensors", SafetensorsBytes(header, data));
}

}  // namespace llm
