#include <filesystem>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/loader/model_directory.h"
#include "src/loader/safetensors_header.h"
#include "src/loader/safetensors_set.h"
#include "tests/support/hub_directory.h"

namespace llm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

Json Tensor(const char* type, std::vector<int64_t> shape, uint64_t begin, uint64_t end) {
  return {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

absl::StatusOr<std::vector<SafeTensor>> Read(const std::string& bytes,
                                             const LoaderLimits& limits = {}) {
  const auto file = MemoryModelFile(bytes.data(), bytes.size(), "x.safetensors");
  auto tensors = ReadSafetensorsHeader(*file, limits);
  if (tensors.ok()) {
    for (SafeTensor& tensor : *tensors) tensor.file = nullptr;  // gone with this function
  }
  return tensors;
}

std::string ErrorOf(const Json& header, size_t data_bytes) {
  const auto tensors = Read(SafetensorsBytes(header, std::string(data_bytes, 'x')));
  return tensors.ok() ? "" : std::string(tensors.status().message());
}

TEST(SafetensorsHeaderTest, ListsTensorsInTheOrderOfTheirBytes) {
  const Json header = {{"__metadata__", {{"format", "pt"}}},
                       {"a", Tensor("F32", {2, 3}, 4, 28)},
                       {"b", Tensor("BF16", {2}, 0, 4)},
                       {"c", Tensor("U8", {}, 28, 29)}};
  const std::string bytes = SafetensorsBytes(header, std::string(29, 'x'));
  const auto tensors = Read(bytes);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "b");
  EXPECT_EQ((*tensors)[0].type, SafeType::kBF16);
  EXPECT_EQ((*tensors)[0].offset, bytes.size() - 29);
  EXPECT_EQ((*tensors)[1].name, "a");
  EXPECT_EQ((*tensors)[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*tensors)[1].size_bytes, 24u);
  EXPECT_EQ((*tensors)[2].shape, (std::vector<int64_t>{1}));
}

TEST(SafetensorsHeaderTest, NamesTheTensorThatIsWrong) {
  const auto one = [](const Json& tensor) { return Json{{"t.w", tensor}}; };
  EXPECT_THAT(ErrorOf(one(Tensor("F32", {2}, 0, 4)), 4),
              AllOf(HasSubstr("x.safetensors: tensor t.w"), HasSubstr("4 bytes"), HasSubstr("8")));
  EXPECT_THAT(ErrorOf(one(Tensor("F32", {1}, 0, 4)), 3), HasSubstr("lies outside the 3 bytes"));
  EXPECT_THAT(ErrorOf(one(Tensor("F4", {1}, 0, 4)), 4), HasSubstr("dtype F4 is not supported"));
  EXPECT_THAT(ErrorOf(one(Tensor("F32", {0}, 0, 0)), 0), HasSubstr("dimension 0 is 0"));
  EXPECT_THAT(ErrorOf(one(Tensor("F32", {-1}, 0, 4)), 4), HasSubstr("dimension 0 is -1"));
  EXPECT_THAT(ErrorOf(one(Tensor("F32", {INT64_MAX, INT64_MAX}, 0, 4)), 4),
              HasSubstr("more than 64 bits"));
  EXPECT_THAT(ErrorOf(one({{"dtype", "F32"}, {"shape", {1}}}), 4),
              HasSubstr("data_offsets: missing"));
  EXPECT_THAT(ErrorOf(one({{"dtype", 1}, {"shape", {1}}, {"data_offsets", {0, 4}}}), 4),
              HasSubstr("dtype: expected a string"));
  EXPECT_THAT(ErrorOf(one({{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {4, 0}}}), 4),
              HasSubstr("[4, 0)"));
  Json unknown = Tensor("F32", {1}, 0, 4);
  unknown["strides"] = 1;
  EXPECT_THAT(ErrorOf(one(unknown), 4), HasSubstr("field strides is unknown"));
  EXPECT_THAT(ErrorOf(one(Json::array()), 0), HasSubstr("expected an object, is an array"));
}

TEST(SafetensorsHeaderTest, RefusesOverlapsAndBytesOfNoTensor) {
  const auto two = [](const Json& a, const Json& b) { return Json{{"a", a}, {"b", b}}; };
  EXPECT_THAT(ErrorOf(two(Tensor("U8", {4}, 0, 4), Tensor("U8", {4}, 2, 6)), 6),
              HasSubstr("tensor b: overlaps tensor a"));
  EXPECT_THAT(ErrorOf(two(Tensor("U8", {4}, 0, 4), Tensor("U8", {4}, 5, 9)), 9),
              HasSubstr("tensor b: 1 bytes before it belong to no tensor"));
  EXPECT_THAT(ErrorOf(two(Tensor("U8", {4}, 0, 4), Tensor("U8", {4}, 4, 8)), 9),
              HasSubstr("the last 1 bytes belong to no tensor"));
}

TEST(SafetensorsHeaderTest, BoundsTheHeaderBeforeReadingIt) {
  EXPECT_THAT(std::string(Read("short").status().message()), HasSubstr("shorter than"));
  EXPECT_THAT(std::string(Read(std::string(8, '\xFF')).status().message()),
              HasSubstr("a header of 18446744073709551615 bytes in a file of 8"));
  const std::string bytes = SafetensorsBytes({{"a", Tensor("U8", {1}, 0, 1)}}, "x");
  LoaderLimits limits;
  limits.max_header_bytes = 8;
  EXPECT_THAT(std::string(Read(bytes, limits).status().message()), HasSubstr("limit of 8"));
  limits = {};
  limits.max_tensors = 0;
  EXPECT_THAT(std::string(Read(bytes, limits).status().message()), HasSubstr("limit of 0"));
}

class SafetensorsSetTest : public testing::Test {
 protected:
  absl::StatusOr<SafetensorsSet> OpenSet() {
    const auto directory = ModelDirectory::Open(hub_.path());
    EXPECT_TRUE(directory.ok()) << directory.status();
    return OpenSafetensors(*directory, {});
  }
  std::string Error() {
    const auto set = OpenSet();
    return set.ok() ? "" : std::string(set.status().message());
  }
  void WriteShards(const Json& weight_map) {
    hub_.Remove("model.safetensors");
    hub_.Write("one.safetensors", SafetensorsBytes({{"a", Tensor("U8", {1}, 0, 1)}}, "x"));
    hub_.Write("two.safetensors", SafetensorsBytes({{"b", Tensor("U8", {1}, 0, 1)}}, "y"));
    hub_.WriteJson("model.safetensors.index.json",
                   Json{{"metadata", {{"total_size", 2}}}, {"weight_map", weight_map}});
  }

  HubDirectory hub_;
};

TEST_F(SafetensorsSetTest, OpensOneFileOrThoseOfAnIndex) {
  auto set = OpenSet();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->tensors.size(), 12u);
  WriteShards({{"a", "one.safetensors"}, {"b", "two.safetensors"}});
  set = OpenSet();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->files.size(), 2u);
  char value = 0;
  const SafeTensor& b = set->tensors.at("b");
  ASSERT_TRUE(b.file->Read(b.offset, 1, &value).ok());
  EXPECT_EQ(value, 'y');
}

TEST_F(SafetensorsSetTest, RefusesAnIndexThatDisagreesWithItsFiles) {
  WriteShards({{"a", "one.safetensors"}, {"b", "one.safetensors"}});
  EXPECT_THAT(Error(), HasSubstr("weight_map: tensor b: not in one.safetensors"));
  WriteShards({{"a", "one.safetensors"}, {"c", "two.safetensors"}});
  EXPECT_THAT(Error(), HasSubstr("tensor c: not in two.safetensors"));
  WriteShards({{"a", "one.safetensors"}, {"b", "two.safetensors"}, {"c", "two.safetensors"}});
  EXPECT_THAT(Error(), HasSubstr("tensor c: not in two.safetensors"));
  WriteShards({{"a", "one.safetensors"}});
  hub_.Write(
      "one.safetensors",
      SafetensorsBytes({{"a", Tensor("U8", {1}, 0, 1)}, {"b", Tensor("U8", {1}, 1, 2)}}, "xy"));
  EXPECT_THAT(Error(), HasSubstr("no tensor b, which"));
  WriteShards({{"a", 3}});
  EXPECT_THAT(Error(), HasSubstr("tensor a: expected a string"));
  WriteShards({{"a", "three.safetensors"}});
  EXPECT_THAT(Error(), HasSubstr("three.safetensors"));
}

TEST_F(SafetensorsSetTest, NeverLeavesTheDirectory) {
  for (const char* name : {"../one.safetensors", "/etc/passwd", "..", ".", "", "sub/x", "a\\b"}) {
    WriteShards({{"a", name}});
    EXPECT_THAT(Error(), HasSubstr("is no plain file name")) << name;
  }
  HubDirectory other;
  WriteShards({{"a", "link.safetensors"}});
  std::filesystem::create_symlink(other.path() + "/model.safetensors",
                                  hub_.path() + "/link.safetensors");
  EXPECT_THAT(Error(), HasSubstr("a link that leads out of the directory"));
}

TEST_F(SafetensorsSetTest, FollowsTheLinksOfAHubsStore) {
  namespace fs = std::filesystem;
  const std::string snapshot = hub_.path() + "/snapshots/1234";
  fs::create_directories(snapshot);
  fs::create_directories(hub_.path() + "/blobs");
  fs::rename(hub_.path() + "/model.safetensors", hub_.path() + "/blobs/abcd");
  fs::create_symlink("../../blobs/abcd", snapshot + "/model.safetensors");
  const auto directory = ModelDirectory::Open(snapshot);
  ASSERT_TRUE(directory.ok());
  const auto set = OpenSafetensors(*directory, {});
  EXPECT_TRUE(set.ok()) << set.status();
}

TEST_F(SafetensorsSetTest, SaysWhenThereAreNoWeights) {
  hub_.Remove("model.safetensors");
  EXPECT_THAT(Error(), HasSubstr("neither model.safetensors nor model.safetensors.index.json"));
}

}  // namespace
}  // namespace llm
