#include "src/loader/gguf_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/loader/gguf_builder.h"

namespace llm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;

// `bytes` outlives the source.
absl::StatusOr<std::unique_ptr<WeightSource>> Open(const std::string& bytes,
                                                   const LoaderLimits& limits = {}) {
  return OpenGguf(MemoryModelFile(bytes.data(), bytes.size(), "x.gguf"), limits);
}

void ExpectRefused(const std::string& bytes, absl::StatusCode code,
                   const testing::Matcher<std::string>& message, const LoaderLimits& limits = {}) {
  const absl::Status status = Open(bytes, limits).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("gguf x.gguf: "), message));
}

void ExpectMalformed(const std::string& bytes, const std::string& message,
                     const LoaderLimits& limits = {}) {
  ExpectRefused(bytes, absl::StatusCode::kInvalidArgument, HasSubstr(message), limits);
}

TEST(GgufReaderTest, ListsTensorsWithRowMajorShapesAndReadsTheirBytes) {
  std::string data(96, '\0');
  const float values[6] = {1, 2, 3, 4, 5, 6};
  std::memcpy(data.data(), values, sizeof(values));
  data[32] = 'q';
  const std::string file =
      GgufBuilder().Tensor("a", {3, 2}, kF32, 0).Tensor("b", {32, 1, 2}, kQ4_0, 32).Build(data);
  auto source = Open(file);
  ASSERT_TRUE(source.ok()) << source.status();

  ASSERT_EQ((*source)->tensors().size(), 2u);
  const TensorInfo* a = (*source)->Find("a");
  ASSERT_EQ(a, &(*source)->tensors()[0]);
  EXPECT_THAT(a->shape, ElementsAre(2, 3));
  EXPECT_EQ(a->format, WeightFormat::kF32);
  EXPECT_EQ(a->size_bytes, 24u);
  const TensorInfo* b = (*source)->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_THAT(b->shape, ElementsAre(2, 1, 32));
  EXPECT_EQ(b->size_bytes, 36u);
  EXPECT_EQ((*source)->Find("c"), nullptr);

  float read[2];
  ASSERT_TRUE((*source)->Read(*a, 16, 8, read).ok());
  EXPECT_THAT(read, ElementsAre(5, 6));
  char first;
  ASSERT_TRUE((*source)->Read(*b, 0, 1, &first).ok());
  EXPECT_EQ(first, 'q');
  const absl::Status beyond = (*source)->Read(*a, 20, 8, read);
  EXPECT_EQ(beyond.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(beyond.message()), HasSubstr("tensor a"));
}

TEST(GgufReaderTest, ReadsEveryTypeOfMetadata) {
  const std::string file = GgufBuilder(2)
                               .Value("u8", GgufType::kUint8, uint8_t{255})
                               .Value("i8", GgufType::kInt8, int8_t{-1})
                               .Value("u16", GgufType::kUint16, uint16_t{65535})
                               .Value("i16", GgufType::kInt16, int16_t{-2})
                               .Value("u32", GgufType::kUint32, uint32_t{4294967295})
                               .Value("i32", GgufType::kInt32, int32_t{-3})
                               .Value("u64", GgufType::kUint64, uint64_t{1} << 62)
                               .Value("i64", GgufType::kInt64, int64_t{-4})
                               .Value("f32", GgufType::kFloat32, 0.5f)
                               .Value("f64", GgufType::kFloat64, 0.1)
                               .Value("yes", GgufType::kBool, uint8_t{1})
                               .String("text", "caf\xc3\xa9")
                               .Build();
  auto source = Open(file);
  ASSERT_TRUE(source.ok()) << source.status();
  const Metadata& metadata = (*source)->metadata();
  EXPECT_EQ(metadata.GetInt("u8").value(), 255);
  EXPECT_EQ(metadata.GetInt("i8").value(), -1);
  EXPECT_EQ(metadata.GetInt("u16").value(), 65535);
  EXPECT_EQ(metadata.GetInt("i16").value(), -2);
  EXPECT_EQ(metadata.GetInt("u32").value(), 4294967295);
  EXPECT_EQ(metadata.GetInt("i32").value(), -3);
  EXPECT_EQ(metadata.GetInt("u64").value(), int64_t{1} << 62);
  EXPECT_EQ(metadata.GetInt("i64").value(), -4);
  EXPECT_EQ(metadata.GetFloat("f32").value(), 0.5);
  EXPECT_EQ(metadata.GetFloat("f64").value(), 0.1);
  EXPECT_TRUE(metadata.GetBool("yes").value());
  EXPECT_EQ(metadata.GetString("text").value(), "caf\xc3\xa9");
  EXPECT_TRUE(metadata.Has("u8"));
  EXPECT_FALSE(metadata.Has("u9"));
  EXPECT_THAT(metadata.Keys(), ElementsAre("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64",
                                           "f32", "f64", "yes", "text"));
}

TEST(GgufReaderTest, ReadsArraysOfNumbersBoolsAndStrings) {
  std::vector<uint8_t> small(1000);
  for (size_t i = 0; i < small.size(); ++i) small[i] = static_cast<uint8_t>(i * 7);
  const std::string file =
      GgufBuilder()
          .Array<int16_t>("ints", GgufType::kInt16, {-1, 0, 32767})
          .Array<uint32_t>("small", GgufType::kUint32, {small.begin(), small.end()})
          .Array<uint64_t>("great", GgufType::kUint64, {0, ~uint64_t{0}})
          .Value("one", GgufType::kInt32, int32_t{1})
          .Array<uint8_t>("bools", GgufType::kBool, {1, 0})
          .Array<float>("floats", GgufType::kFloat32, {0.5f, -2})
          .Array<double>("doubles", GgufType::kFloat64, {0.25})
          .Strings("strings", {"one", "", std::string("t\0o", 3)})
          .Strings("none", {})
          .Build();
  auto source = Open(file);
  ASSERT_TRUE(source.ok()) << source.status();
  const Metadata& metadata = (*source)->metadata();
  EXPECT_THAT(metadata.GetInts("ints").value(), ElementsAre(-1, 0, 32767));
  EXPECT_THAT(metadata.GetInts("bools").value(), ElementsAre(1, 0));
  EXPECT_THAT(metadata.GetFloats("floats").value(), ElementsAre(0.5f, -2));
  EXPECT_THAT(metadata.GetFloats("doubles").value(), ElementsAre(0.25f));
  EXPECT_THAT(metadata.GetStrings("strings").value(),
              ElementsAre("one", "", absl::string_view("t\0o", 3)));
  EXPECT_THAT(metadata.GetStrings("none").value(), ElementsAre());
  EXPECT_THAT(metadata.GetSmallInts("bools").value(), ElementsAre(1, 0));
  EXPECT_EQ(metadata.GetSmallInts("small").value(), small);
  EXPECT_EQ(metadata.GetSmallInts("ints").status().message(),
            "gguf x.gguf: metadata key ints: element 0 is -1, not one of 0 to 255");
  EXPECT_FALSE(metadata.GetSmallInts("great").ok());
  EXPECT_FALSE(metadata.GetSmallInts("floats").ok());
  EXPECT_STREQ(metadata.DescribeArray("strings")->elements, "strings");
  EXPECT_STREQ(metadata.DescribeArray("bools")->elements, "integers");
  EXPECT_STREQ(metadata.DescribeArray("doubles")->elements, "floats");
  EXPECT_EQ(metadata.DescribeArray("small")->size, 1000u);
  EXPECT_FALSE(metadata.DescribeArray("absent").has_value());
  EXPECT_FALSE(metadata.DescribeArray("one").has_value());
}

TEST(GgufReaderTest, NamesTheKeyThatIsMissingOrOfAnotherType) {
  const std::string file = GgufBuilder()
                               .String("text", "x")
                               .Value("int", GgufType::kUint32, uint32_t{1})
                               .Value("huge", GgufType::kUint64, ~uint64_t{0})
                               .Array<uint64_t>("huges", GgufType::kUint64, {1, ~uint64_t{0}})
                               .Build();
  auto source = Open(file);
  ASSERT_TRUE(source.ok()) << source.status();
  const Metadata& metadata = (*source)->metadata();
  const absl::Status missing = metadata.GetInt("gone").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "gguf x.gguf: metadata key gone: missing");
  const absl::Status wrong = metadata.GetInts("text").status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.message(),
            "gguf x.gguf: metadata key text: expected an array of integers, file has string");
  for (const absl::Status& status :
       {metadata.GetFloat("int").status(), metadata.GetBool("int").status(),
        metadata.GetString("int").status(), metadata.GetStrings("huges").status(),
        metadata.GetFloats("huges").status(), metadata.GetInt("huge").status(),
        metadata.GetInts("huges").status(), metadata.GetInt("huges").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST(GgufReaderTest, RefusesWhatIsNoGgufFile) {
  ExpectMalformed("", "magic");
  ExpectMalformed("GGU", "magic");
  ExpectMalformed("PK\x03\x04 something else", "does not begin with \"GGUF\"");
  ExpectMalformed("GGUF", "version");
}

TEST(GgufReaderTest, NamesTheVersionOrByteOrderThatItDoesNotRead) {
  for (uint32_t version : {0u, 1u, 4u}) {
    ExpectRefused(GgufBuilder(version).Build(), absl::StatusCode::kUnimplemented,
                  HasSubstr("version " + std::to_string(version)));
  }
  ExpectRefused(GgufBuilder(3u << 24).Build(), absl::StatusCode::kUnimplemented,
                HasSubstr("big-endian"));
}

TEST(GgufReaderTest, NamesTheTensorTypeThatItDoesNotRead) {
  ExpectRefused(GgufBuilder().Tensor("blk.0.q", {256}, 9, 0).Build(std::string(128, '\0')),
                absl::StatusCode::kUnimplemented, HasSubstr("tensor blk.0.q: Q8_1 (type 9)"));
  ExpectRefused(GgufBuilder().Tensor("t", {256}, 4000000000, 0).Build(std::string(128, '\0')),
                absl::StatusCode::kUnimplemented, HasSubstr("tensor t: type 4000000000"));
}

TEST(GgufReaderTest, RefusesNamesAndKeysThatAreThereTwice) {
  ExpectMalformed(GgufBuilder().String("key", "a").String("key", "b").Build(),
                  "metadata key key: there twice");
  ExpectMalformed(
      GgufBuilder().Tensor("t", {1}, kF32, 0).Tensor("t", {1}, kF32, 32).Build(std::string(64, 0)),
      "tensor t: there twice");
}

TEST(GgufReaderTest, HonoursTheAlignmentOfTheFile) {
  const GgufBuilder builder = GgufBuilder()
                                  .Value("general.alignment", GgufType::kUint32, uint32_t{256})
                                  .Tensor("a", {1}, kF32, 0)
                                  .Tensor("b", {1}, kF32, 256);
  const std::string file = builder.Build(std::string(260, '\0'), 256);
  auto source = Open(file);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->Find("b")->file_offset % 256, 0u);
  ExpectMalformed(GgufBuilder()
                      .Value("general.alignment", GgufType::kUint32, uint32_t{256})
                      .Tensor("b", {1}, kF32, 32)
                      .Build(std::string(300, '\0'), 256),
                  "tensor b: offset 32 is no multiple of 256");
}

TEST(GgufReaderTest, RefusesAnAlignmentThatIsNoPowerOfTwoUpTo4096) {
  for (uint32_t alignment : {0u, 3u, 48u, 8192u, 0x80000000u}) {
    ExpectMalformed(GgufBuilder().Value("general.alignment", GgufType::kUint32, alignment).Build(),
                    "general.alignment");
  }
  ExpectMalformed(GgufBuilder().String("general.alignment", "32").Build(), "general.alignment");
}

TEST(GgufReaderTest, RefusesTensorsThatAreMisalignedOutsideOrOverlapping) {
  const std::string data(128, '\0');
  ExpectMalformed(GgufBuilder().Tensor("t", {1}, kF32, 4).Build(data), "no multiple of 32");
  ExpectMalformed(GgufBuilder().Tensor("t", {33}, kF32, 0).Build(data), "outside the file");
  ExpectMalformed(GgufBuilder().Tensor("t", {1}, kF32, 128).Build(data), "outside the file");
  ExpectMalformed(GgufBuilder().Tensor("t", {1}, kF32, ~uint64_t{31}).Build(data),
                  "outside the file");
  ExpectMalformed(GgufBuilder().Tensor("t", {1}, kF32, 0).Build(), "outside the file");
  ExpectMalformed(GgufBuilder().Tensor("b", {1}, kF32, 32).Tensor("a", {9}, kF32, 0).Build(data),
                  "tensor b: overlaps tensor a");
}

TEST(GgufReaderTest, RefusesShapesThatTheFormatOr64BitsCannotHave) {
  const std::string data(128, '\0');
  const uint64_t huge = uint64_t{1} << 62;
  ExpectMalformed(GgufBuilder().Tensor("t", {48}, kQ4_0, 0).Build(data), "tensor t: rows of 48");
  ExpectMalformed(GgufBuilder().Tensor("t", {0}, kF32, 0).Build(data), "dimension 0 is 0");
  ExpectMalformed(GgufBuilder().Tensor("t", {1, ~uint64_t{0}}, kF32, 0).Build(data),
                  "dimension 1 is");
  ExpectMalformed(GgufBuilder().Tensor("t", {huge}, kF32, 0).Build(data), "does not fit 64 bits");
  ExpectMalformed(GgufBuilder().Tensor("t", {32, huge}, kQ4_0, 0).Build(data),
                  "does not fit 64 bits");
  ExpectMalformed(GgufBuilder().Tensor("t", {65536, 65536, 65536, 65536}, kF32, 0).Build(data),
                  "does not fit 64 bits");
  ExpectMalformed(GgufBuilder().Tensor("t", {}, kF32, 0).Build(data), "0 dimensions");
  ExpectMalformed(GgufBuilder().Tensor("t", {1, 1, 1, 1, 1}, kF32, 0).Build(data), "5 dimensions");
}

TEST(GgufReaderTest, BelievesNoCountBeyondTheBytesThatAreLeft) {
  const uint64_t huge = ~uint64_t{0};
  for (uint64_t count : {uint64_t{1}, uint64_t{60000}, huge}) {
    ExpectMalformed(GgufBuilder().ClaimTensors(count).Build(), "tensors are more than");
    ExpectMalformed(GgufBuilder().ClaimMetadata(count).Build(), "metadata entries are more than");
    ExpectMalformed(GgufBuilder().BeginArray("k", GgufType::kString, count).Build(),
                    "metadata key k: ");
    ExpectMalformed(GgufBuilder().BeginArray("k", GgufType::kFloat64, count).Build(),
                    "metadata key k: ");
  }
  ExpectMalformed(GgufBuilder().Value("k", GgufType::kString, huge).Build(),
                  "metadata key k: string");
}

TEST(GgufReaderTest, KeepsToTheLimitsOfTheCaller) {
  const std::string file = GgufBuilder()
                               .Strings("words", {"four", "five"})
                               .Tensor("a", {1}, kF32, 0)
                               .Tensor("b", {1}, kF32, 32)
                               .Build(std::string(64, '\0'));
  LoaderLimits limits;
  limits.max_tensors = 1;
  ExpectMalformed(file, "limit of 1", limits);
  limits = {};
  limits.max_metadata_entries = 0;
  ExpectMalformed(file, "limit of 0", limits);
  limits = {};
  limits.max_array_elements = 1;
  ExpectMalformed(file, "limit of 1", limits);
  limits = {};
  limits.max_string_bytes = 3;
  ExpectMalformed(file, "limit of 3", limits);
  limits = {};
  limits.max_header_bytes = 64;
  ExpectMalformed(file, "limit for headers", limits);
}

TEST(GgufReaderTest, RefusesTypesAndBoolsThatDoNotExist) {
  ExpectMalformed(GgufBuilder().Value("k", static_cast<GgufType>(13), uint8_t{1}).Build(),
                  "metadata key k: value type 13");
  ExpectMalformed(GgufBuilder().BeginArray("k", static_cast<GgufType>(99), 0).Build(),
                  "metadata key k: element type 99");
  ExpectMalformed(GgufBuilder().Value("k", GgufType::kBool, uint8_t{2}).Build(),
                  "metadata key k: a bool is 2");
  ExpectRefused(GgufBuilder().BeginArray("k", GgufType::kArray, 0).Build(),
                absl::StatusCode::kUnimplemented, HasSubstr("array of arrays"));
}

TEST(GgufReaderTest, QuotesAndCutsNamesThatAreNoPlainText) {
  ExpectMalformed(GgufBuilder().Value("k\n\x01", GgufType::kBool, uint8_t{2}).Build(),
                  "metadata key \"k\\n\\x01\": ");
  const std::string file =
      GgufBuilder().Value(std::string(5000, 'k'), GgufType::kBool, uint8_t{2}).Build();
  EXPECT_LT(Open(file).status().message().size(), 250u);
}

TEST(GgufReaderTest, ReadsAHeaderOfManyChunks) {
  std::vector<std::string> words;
  for (int i = 0; i < 200000; ++i) words.push_back("word " + std::to_string(i));
  const std::string file =
      GgufBuilder().Strings("words", words).Tensor("t", {1}, kF32, 0).Build("abcd");
  auto source = Open(file);
  ASSERT_TRUE(source.ok()) << source.status();
  const TextList read = (*source)->metadata().GetStrings("words").value();
  ASSERT_EQ(read.size(), words.size());
  EXPECT_TRUE(std::equal(read.begin(), read.end(), words.begin(), words.end()));
}

}  // namespace
}  // namespace llm
