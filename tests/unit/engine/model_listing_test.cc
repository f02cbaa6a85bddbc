#include "src/engine/model_listing.h"

#include <cmath>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/loader/gguf_reader.h"
#include "tests/unit/loader/gguf_builder.h"

namespace llm {
namespace {

using testing::ElementsAre;
using testing::Pair;

ModelListing List(const GgufBuilder& builder) {
  const std::string bytes = builder.Build(std::string(64, '\0'));
  const absl::StatusOr<std::unique_ptr<WeightSource>> source =
      OpenGguf(MemoryModelFile(bytes.data(), bytes.size(), "x.gguf"), LoaderLimits());
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? ListModel(**source) : ModelListing();
}

std::vector<std::pair<std::string, std::string>> Pairs(const ModelListing& listing) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const ListedMetadata& entry : listing.metadata) pairs.emplace_back(entry.key, entry.value);
  return pairs;
}

TEST(ModelListingTest, EveryTypeOfValueHasItsText) {
  GgufBuilder builder;
  builder.Value("int8", GgufType::kInt8, int8_t{-5})
      .Value("uint64", GgufType::kUint64, uint64_t{7})
      .Value("beyond", GgufType::kUint64, UINT64_MAX)
      .Value("float32", GgufType::kFloat32, 0.5f)
      .Value("float64", GgufType::kFloat64, double{NAN})
      .Value("bool", GgufType::kBool, uint8_t{1})
      .String("string", "a\nb")
      .Array("ints", GgufType::kInt16, std::vector<int16_t>{1, -2})
      .Array("floats", GgufType::kFloat32, std::vector<float>{1.5f})
      .Array("bools", GgufType::kBool, std::vector<uint8_t>{1, 0})
      .Array("none", GgufType::kFloat32, std::vector<float>())
      .Array("many", GgufType::kFloat32, std::vector<float>(17, 1.0f))
      .Strings("strings", {"a", "b"})
      .Strings("words", std::vector<std::string>(17, "word"));
  EXPECT_THAT(Pairs(List(builder)),
              ElementsAre(Pair("int8", "-5"), Pair("uint64", "7"),
                          Pair("beyond", "(a value that this library does not read)"),
                          Pair("float32", "0.5"), Pair("float64", "nan"), Pair("bool", "true"),
                          Pair("string", "a\nb"), Pair("ints", "[1, -2]"), Pair("floats", "[1.5]"),
                          Pair("bools", "[1, 0]"), Pair("none", "[]"), Pair("many", "17 floats"),
                          Pair("strings", "[\"a\", \"b\"]"), Pair("words", "17 strings")));
}

TEST(ModelListingTest, BytesThatAreNotUtf8AreReplacedAndLongTextIsCutBetweenCharacters) {
  constexpr size_t kMost = 64 << 10;
  GgufBuilder builder;
  builder.String("bad\xff", "\xc3")
      .String("long", std::string(kMost - 1, 'x') + "\xC3\xA9" + "rest")
      .Tensor("name\xff", {4}, 0, 0);
  const ModelListing listing = List(builder);
  EXPECT_THAT(Pairs(listing), ElementsAre(Pair("bad\xEF\xBF\xBD", "\xEF\xBF\xBD"),
                                          Pair("long", std::string(kMost - 1, 'x'))));
  ASSERT_EQ(listing.tensors.size(), 1u);
  EXPECT_EQ(listing.tensors[0].name, "name\xEF\xBF\xBD");
  EXPECT_EQ(listing.tensors[0].num_dims, 1);
  EXPECT_EQ(listing.tensors[0].shape[0], 4u);
  EXPECT_EQ(listing.tensors[0].type, "F32");
}

}  // namespace
}  // namespace llm
