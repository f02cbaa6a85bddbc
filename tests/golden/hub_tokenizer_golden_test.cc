// tokenizer.json files of the kinds that hubs hand out give the ids and texts that the tokenizers
// library gives.
#include <string>

#include "nlohmann/json.hpp"
#include "src/engine/tokenizer_from_hub.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/golden/golden_util.h"

namespace llm {
namespace {

class HubTokenizerTest : public testing::TestWithParam<const char*> {};

TEST_P(HubTokenizerTest, GivesTheIdsAndTextsOfTheGolden) {
  const nlohmann::json golden =
      ReadJson(std::string(INLAY_TEST_DATA "/tokenizer/hub_") + GetParam() + ".json");
  ASSERT_FALSE(golden.is_discarded());
  const auto document = JsonDocument::Parse(golden["tokenizer"].dump());
  const auto config = JsonDocument::Parse("{}");
  ASSERT_TRUE(document.ok() && config.ok());
  auto spec = TokenizerSpecFromHub(*document, *config);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto tokenizer = Tokenizer::Create(*std::move(spec));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const nlohmann::json& record : golden["cases"]) {
    const std::string text = record["text"];
    const auto expected = record["ids"].get<std::vector<int32_t>>();
    const auto ids = (*tokenizer)->Encode(text, {.add_special = true, .parse_special = true});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, expected) << text;
    const auto decoded = (*tokenizer)->Decode(expected, false);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, record["decoded"].get<std::string>()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HubTokenizerTest,
                         testing::Values("prepend", "metaspace_first", "metaspace_split", "replace",
                                         "digits", "splits"),
                         [](const testing::TestParamInfo<const char*>& param_info) {
                           return std::string(param_info.param);
                         });

}  // namespace
}  // namespace llm
