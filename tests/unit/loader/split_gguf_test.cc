// A file cut into parts reads as the whole one, and each mistake names the part.
#include "src/loader/split_gguf.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/loader/gguf_reader.h"
#include "tests/support/split_file.h"

namespace llm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const char kWhole[] = INLAY_TEST_DATA "/gguf/llama_h256-KMIX_A.gguf";

class SplitGgufTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/split_gguf_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    split_ = std::make_unique<SplitFile>(kWhole, folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(int index) const { return split_->Path(index); }
  void Write(const Cut& cut) const { split_->Write(cut); }
  std::string Error(int part = 0) const {
    const absl::Status status = OpenGgufParts(Path(part), {}).status();
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
    return std::string(status.message());
  }

  std::string folder_;
  std::unique_ptr<SplitFile> split_;
};

TEST_F(SplitGgufTest, IsTheWholeFileByWhicheverPartIsNamed) {
  for (const bool tensors_in_first : {true, false}) {
    Cut cut;
    cut.tensors_in_first = tensors_in_first;
    Write(cut);
    for (int named = 0; named < 3; ++named) {
      auto file = OpenGgufParts(Path(named), {});
      ASSERT_TRUE(file.ok()) << file.status();
      auto source = OpenGguf(*std::move(file), {});
      ASSERT_TRUE(source.ok()) << source.status();
      EXPECT_EQ(*(*source)->metadata().GetString("general.architecture"), "llama");
      EXPECT_EQ(*(*source)->metadata().GetInt("split.count"), 1);
      EXPECT_EQ((*source)->tensors().size(), split_->whole().tensors.size());
      for (const TensorInfo& tensor : split_->whole().tensors) {
        const TensorInfo* found = (*source)->Find(tensor.name);
        ASSERT_NE(found, nullptr) << tensor.name;
        ASSERT_EQ(found->size_bytes, tensor.size_bytes);
        EXPECT_EQ(found->shape, tensor.shape);
        std::string expected(tensor.size_bytes, '\0'), got(tensor.size_bytes, '\1');
        ASSERT_TRUE(
            split_->whole_file().Read(tensor.file_offset, tensor.size_bytes, expected.data()).ok());
        ASSERT_TRUE((*source)->Read(*found, 0, tensor.size_bytes, got.data()).ok());
        EXPECT_EQ(got, expected) << tensor.name;
      }
    }
  }
}

TEST_F(SplitGgufTest, NamesThePartThatIsMissingOrCut) {
  Write({});
  std::filesystem::resize_file(Path(2), std::filesystem::file_size(Path(2)) - 100);
  EXPECT_THAT(Error(), AllOf(HasSubstr("m-00003-of-00003.gguf"), HasSubstr("tensor")));
  std::filesystem::resize_file(Path(2), 10);
  EXPECT_THAT(Error(), HasSubstr("m-00003-of-00003.gguf"));
  std::filesystem::remove(Path(1));
  EXPECT_EQ(OpenGgufParts(Path(0), {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Error(), HasSubstr("m-00002-of-00003.gguf"));
}

TEST_F(SplitGgufTest, NamesThePartThatBelongsElsewhere) {
  Write({.swapped_no = 1});
  EXPECT_THAT(Error(), AllOf(HasSubstr("m-00002-of-00003.gguf"),
                             HasSubstr("split.no: expected 1, the part has 7")));
  Write({.count = 4});
  EXPECT_THAT(Error(2), AllOf(HasSubstr("m-00001-of-00003.gguf"),
                              HasSubstr("split.count: expected 3, the part has 4")));
  Write({.total_off = 1});
  EXPECT_THAT(Error(), AllOf(HasSubstr("m-00001-of-00003.gguf"), HasSubstr("split.tensors.count")));
  Write({.total_off = 1, .repeats_tensor = 2});
  EXPECT_THAT(Error(), AllOf(HasSubstr("m-00003-of-00003.gguf: tensor"), HasSubstr("also in"),
                             HasSubstr("m-00001-of-00003.gguf")));
}

TEST_F(SplitGgufTest, IsNotLookedForBehindOtherNames) {
  std::filesystem::copy_file(kWhole, Path(0));  // no key split.count
  auto file = OpenGgufParts(Path(0), {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), split_->whole_file().size());
  for (const char* name :
       {"/m.gguf", "/00001-of-00003.gguf", "/m-0001-of-00003.gguf", "/m-00001-of-00003.ggu"}) {
    std::filesystem::copy_file(kWhole, folder_ + name);
    EXPECT_TRUE(OpenGgufParts(folder_ + name, {}).ok()) << name;
  }
}

TEST_F(SplitGgufTest, BoundsTheTensorsOfAllParts) {
  Write({});
  LoaderLimits limits;
  limits.max_tensors = split_->whole().tensors.size() - 1;
  EXPECT_EQ(OpenGgufParts(Path(0), limits).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace llm
