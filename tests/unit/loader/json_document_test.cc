#include "src/loader/json_document.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const std::string& text, const JsonLimits& limits = {}) {
  const auto document = JsonDocument::Parse(text, limits);
  return document.ok() ? "" : std::string(document.status().message());
}

TEST(JsonDocumentTest, GivesValuesByTypeAndPlace) {
  const auto document = JsonDocument::Parse(
      R"({"a": [1, 2.5, "x", null, true, {"b": {}}], "c": -3, "d": 4.0, "e": 18446744073709551615})");
  ASSERT_TRUE(document.ok()) << document.status();
  const JsonValue root = document->root();
  EXPECT_EQ(root.num_items(), 4u);
  std::vector<std::string> keys;
  for (JsonValue v = root.first(); v.exists(); v = v.next()) keys.emplace_back(v.key());
  EXPECT_THAT(keys, ElementsAre("a", "c", "d", "e"));
  const JsonValue list = root.Find("a");
  ASSERT_EQ(list.num_items(), 6u);
  std::vector<JsonValue> items;
  for (JsonValue v = list.first(); v.exists(); v = v.next()) items.push_back(v);
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(*items[0].GetInt(), 1);
  EXPECT_EQ(*items[1].GetFloat(), 2.5);
  EXPECT_EQ(*items[2].GetString(), "x");
  EXPECT_TRUE(items[3].is_null());
  EXPECT_TRUE(*items[4].GetBool());
  EXPECT_TRUE(items[5].Find("b").Is(JsonType::kObject));
  EXPECT_FALSE(items[5].Find("b").first().exists());
  EXPECT_EQ(*root.Find("c").GetInt(), -3);
  EXPECT_EQ(*root.Find("d").GetInt(), 4);
  EXPECT_FALSE(root.Find("e").GetInt().ok());
  EXPECT_FALSE(root.Find("z").exists());
}

TEST(JsonDocumentTest, SaysWhatAValueIsInsteadOfWhatWasWanted) {
  const auto document = JsonDocument::Parse(R"({"a": "x", "b": 1.5})");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->root().Find("a").GetInt().status().message(),
            "expected an integer, is a string");
  EXPECT_EQ(document->root().Find("b").GetInt().status().message(),
            "expected an integer, is a number");
  EXPECT_EQ(document->root().Find("c").GetBool().status().message(), "missing");
}

TEST(JsonDocumentTest, RefusesWhatIsNoJson) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no JSON at byte"));
  EXPECT_THAT(ErrorOf("{\"a\": 1"), HasSubstr("no JSON at byte"));
  EXPECT_THAT(ErrorOf("{} x"), HasSubstr("no JSON at byte"));
  EXPECT_THAT(ErrorOf(std::string("{}\0{}", 5)), HasSubstr("no JSON at byte 2"));
  EXPECT_THAT(ErrorOf("{\"a\": NaN}"), HasSubstr("no JSON at byte"));
  EXPECT_THAT(ErrorOf("[\"\xFF\"]"), HasSubstr("no JSON at byte"));
}

TEST(JsonDocumentTest, RefusesAKeyThatIsThereTwice) {
  EXPECT_THAT(ErrorOf(R"({"a": 1, "b": {"x": 1, "y": 2, "x": 3}})"),
              HasSubstr("key x: there twice"));
}

TEST(JsonDocumentTest, BoundsDepthAndNumberOfValues) {
  const std::string deep(100000, '[');
  EXPECT_THAT(ErrorOf(deep), HasSubstr("nests deeper than 64"));
  EXPECT_THAT(ErrorOf("[1, 2, 3]", {.max_depth = 2, .max_values = 3}),
              HasSubstr("more than 3 values"));
}

}  // namespace
}  // namespace llm
