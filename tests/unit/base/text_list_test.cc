#include "src/base/text_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <vector>

namespace llm {
namespace {

using testing::ElementsAre;

TEST(TextListTest, ReadsTheTextsInOrderAtAnyAlignment) {
  const std::vector<std::string> texts = {"one", "", std::string("t\0o", 3), "three"};
  const std::string bytes = "x" + JoinForTextList(texts);
  const TextList list(absl::string_view(bytes).substr(1), texts.size());
  EXPECT_THAT(list, ElementsAre("one", "", absl::string_view("t\0o", 3), "three"));
  EXPECT_EQ(list.num_text_bytes(), 11u);
  EXPECT_EQ(*std::next(list.begin(), 3), "three");
  EXPECT_FALSE(list.empty());
}

TEST(TextListTest, MayBeEmpty) {
  EXPECT_THAT(TextList(), ElementsAre());
  EXPECT_THAT(TextList("", 0), ElementsAre());
  EXPECT_TRUE(TextList().empty());
  EXPECT_EQ(TextList().num_text_bytes(), 0u);
}

}  // namespace
}  // namespace llm
