// What a model directory may get wrong, and that each mistake is named.
#include "src/engine/directory_model.h"

#include <functional>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/engine/loaded_model.h"
#include "tests/support/hub_directory.h"

namespace llm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using Json = nlohmann::json;

absl::Status Open(const HubDirectory& hub) {
  ModelOptions options;
  options.header_only = true;
  return LoadedModel::Open(hub.path(), options).status();
}

std::string Error(const HubDirectory& hub) {
  const absl::Status status = Open(hub);
  EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
  return std::string(status.message());
}

TEST(DirectoryModelTest, OpensWhatIsWellFormed) {
  const HubDirectory hub;
  const absl::Status status = Open(hub);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(DirectoryModelTest, EndsAnswersWhereAnyOfItsFilesSaysSo) {
  HubDirectory hub;
  hub.WriteJson("generation_config.json", Json{{"eos_token_id", {258, 259}}});
  ModelOptions options;
  options.header_only = true;
  const auto model = LoadedModel::Open(hub.path(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->text().end_ids, (std::vector<int32_t>{1, 258, 259}));
  hub.WriteJson("generation_config.json", Json{{"eos_token_id", {258, 9999}}});
  EXPECT_THAT(Error(hub), HasSubstr("generation_config.json: key eos_token_id: 9999"));
}

TEST(DirectoryModelTest, PrefersTheTemplateThatIsAFileOfItsOwn) {
  HubDirectory hub;
  hub.Write("chat_template.jinja", "{{ messages[0].content }}!");
  ModelOptions options;
  options.header_only = true;
  const auto model = LoadedModel::Open(hub.path(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(*RenderChat((*model)->text(), R"([{"role": "user", "content": "hi"}])"), "hi!");
}

TEST(DirectoryModelTest, GivesReasoningToTheTemplateUnderItsOtherNames) {
  HubDirectory hub;
  hub.Write("chat_template.jinja",
            "{% for m in messages %}{{ m.thinking }},{{ m.reasoning_content }};{% endfor %}");
  ModelOptions options;
  options.header_only = true;
  const auto model = LoadedModel::Open(hub.path(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(*RenderChat((*model)->text(), R"([{"reasoning_content": "a"}, {"thinking": "b"},
      {"reasoning": "c"}, {"reasoning_content": null, "reasoning": "d"}, {"content": "e"},
      {"reasoning_content": "f", "thinking": "g"}])"),
            "a,a;b,b;c,c;d,d;,;g,f;");
}

TEST(DirectoryModelTest, NamesTheFileThatIsMissing) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const HubDirectory hub;
    hub.Remove(name);
    EXPECT_THAT(Error(hub), AllOf(HasSubstr(hub.path()), HasSubstr(name)));
  }
}

TEST(DirectoryModelTest, RefusesKeysAndTensorsThatItDoesNotKnow) {
  HubDirectory hub;
  hub.config["attention_sinks"] = 4;
  hub.Save();
  EXPECT_EQ(Open(hub).code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Error(hub), HasSubstr("config.json: key attention_sinks: not known"));
  hub.config["attention_sinks"] = nullptr;  // says nothing
  hub.config["rope_scaling"]["ramp"] = 1;
  hub.Save();
  EXPECT_THAT(Error(hub), HasSubstr("config.json: rope_scaling: key ramp: not known"));
  hub.config["rope_scaling"].erase("ramp");
  hub.header["model.layers.0.self_attn.gate.weight"] =
      hub.header["model.layers.0.self_attn.q_proj.weight"];
  hub.header.erase("model.layers.0.self_attn.q_proj.weight");
  hub.Save();
  EXPECT_EQ(Open(hub).code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Error(hub), HasSubstr("tensor model.layers.0.self_attn.gate.weight"));
}

TEST(DirectoryModelTest, ANameThatSpellsThePlaceOfANumberHasNone) {
  HubDirectory hub;
  hub.header["model.layers.{}.input_layernorm.weight"] =
      hub.header["model.layers.0.input_layernorm.weight"];
  hub.header.erase("model.layers.0.input_layernorm.weight");
  hub.Save();
  EXPECT_THAT(Error(hub), HasSubstr("not known to llama"));
}

TEST(DirectoryModelTest, SpeaksOfTheDirectorysNamesBesideItsOwn) {
  HubDirectory hub;
  hub.config["num_attention_heads"] = 5000;
  hub.Save();
  EXPECT_THAT(Error(hub), HasSubstr("key num_attention_heads (llama.attention.head_count): "
                                    "expected 1 to"));
  hub.config["num_attention_heads"] = 2;
  hub.config["hidden_size"] = 64;
  hub.Save();
  EXPECT_THAT(
      Error(hub),
      HasSubstr("tensor model.embed_tokens.weight (token_embd.weight): expected [260, 64]"));
}

TEST(DirectoryModelTest, HoldsBiasesAndTheHeadToWhatTheConfigSays) {
  HubDirectory hub;
  hub.config["attention_bias"] = true;
  hub.Save();
  EXPECT_THAT(Error(hub), AllOf(HasSubstr("self_attn"), HasSubstr("bias"), HasSubstr("missing")));
  hub.config["attention_bias"] = false;
  const Json down = hub.header["model.layers.0.mlp.down_proj.weight"];
  const uint64_t end = hub.data.size();
  hub.header["model.layers.0.mlp.down_proj.bias"] = {
      {"dtype", "BF16"}, {"shape", {32}}, {"data_offsets", {end, end + 64}}};
  hub.data.resize(end + 64);
  hub.Save();
  EXPECT_THAT(Error(hub), AllOf(HasSubstr("down_proj.bias"), HasSubstr("there, although")));
  HubDirectory tied;
  tied.config["tie_word_embeddings"] = true;
  tied.Save();
  EXPECT_TRUE(Open(tied).ok());  // the head of its file is not used
  HubDirectory untied;
  untied.header["model.layers.0.self_attn.rotary_emb.inv_freq"] = untied.header["lm_head.weight"];
  untied.header.erase("lm_head.weight");
  untied.Save();
  EXPECT_THAT(Error(untied), HasSubstr("lm_head.weight: missing"));
}

// Values that are of another type, out of range, or absurd.
std::vector<Json> BadValues() {
  return {Json(nullptr),   Json("x"),  Json(-1),  Json(0),           Json(1e300),
          Json(INT64_MIN), Json(true), Json(1.5), Json::array({-7}), Json{{"k", "v"}}};
}

// Replaces the value at `pointer` and says whether the outcome is a clear one.
// `save` writes the file that it is in.
void SpoilAt(HubDirectory* hub, Json* root, const Json::json_pointer& pointer,
             const std::function<void()>& save) {
  const Json original = (*root)[pointer];
  for (const Json& bad : BadValues()) {
    (*root)[pointer] = bad;
    save();
    const absl::Status status = Open(*hub);
    SCOPED_TRACE(pointer.to_string() + " = " + bad.dump() + ": " + status.ToString());
    if (status.ok()) continue;
    EXPECT_NE(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()),
                AnyOf(HasSubstr(hub->path()), HasSubstr("tokenizer: ")));
    EXPECT_THAT(
        std::string(status.message()),
        AnyOf(HasSubstr(pointer.back()), HasSubstr("tensor "), HasSubstr("token"),
              HasSubstr(pointer.parent_pointer().empty() ? pointer.back()
                                                         : pointer.parent_pointer().back())));
  }
  (*root)[pointer] = original;
  save();
}

TEST(DirectoryModelTest, NamesWhateverKeyOfTheConfigIsSpoilt) {
  HubDirectory hub;
  const Json flat = hub.config.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    SpoilAt(&hub, &hub.config, Json::json_pointer(pointer),
            [&] { hub.WriteJson("config.json", hub.config); });
  }
}

TEST(DirectoryModelTest, NamesWhateverFieldOfTheHeaderIsSpoilt) {
  HubDirectory hub;
  const Json flat = hub.header.flatten();
  int count = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (count++ % 3 != 0) continue;
    SpoilAt(&hub, &hub.header, Json::json_pointer(pointer),
            [&] { hub.Write("model.safetensors", SafetensorsBytes(hub.header, hub.data)); });
  }
}

TEST(DirectoryModelTest, NamesWhateverFieldOfTheTokenizerIsSpoilt) {
  HubDirectory hub;
  for (const char* pointer : {"/model",
                              "/model/type",
                              "/model/vocab",
                              "/model/vocab/he",
                              "/model/merges",
                              "/model/merges/1",
                              "/model/dropout",
                              "/model/unk_token",
                              "/model/byte_fallback",
                              "/model/ignore_merges",
                              "/added_tokens",
                              "/added_tokens/0/id",
                              "/added_tokens/0/content",
                              "/added_tokens/0/special",
                              "/added_tokens/0/single_word",
                              "/added_tokens/0/lstrip",
                              "/normalizer",
                              "/pre_tokenizer",
                              "/pre_tokenizer/type",
                              "/pre_tokenizer/add_prefix_space",
                              "/pre_tokenizer/use_regex",
                              "/post_processor",
                              "/decoder",
                              "/decoder/type"}) {
    SpoilAt(&hub, &hub.tokenizer, Json::json_pointer(pointer),
            [&] { hub.WriteJson("tokenizer.json", hub.tokenizer); });
  }
  for (const char* pointer : {"/bos_token", "/eos_token/content", "/chat_template"}) {
    SpoilAt(&hub, &hub.tokenizer_config, Json::json_pointer(pointer),
            [&] { hub.WriteJson("tokenizer_config.json", hub.tokenizer_config); });
  }
}

// Bytes flipped and cut anywhere: a status, whatever it says.
TEST(DirectoryModelTest, SurvivesRandomDamageToEachFile) {
  const HubDirectory hub;
  const std::pair<const char*, std::string> files[] = {
      {"config.json", hub.config.dump()},
      {"tokenizer.json", hub.tokenizer.dump()},
      {"tokenizer_config.json", hub.tokenizer_config.dump()},
      {"model.safetensors", SafetensorsBytes(hub.header, hub.data)}};
  std::mt19937 random(20261130);
  for (const auto& [name, bytes] : files) {
    for (int i = 0; i < 100; ++i) {
      std::string damaged = bytes;
      const size_t range = std::min<size_t>(bytes.size(), 4096);  // a header's; zeros follow
      for (int flips = 0; flips < 3; ++flips) {
        damaged[random() % range] = static_cast<char>(random());
      }
      if (i % 10 == 0) damaged.resize(random() % damaged.size());
      hub.Write(name, damaged);
      const absl::Status status = Open(hub);
      EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
      EXPECT_TRUE(status.ok() || !status.message().empty());
    }
    hub.Write(name, bytes);
  }
}

}  // namespace
}  // namespace llm
