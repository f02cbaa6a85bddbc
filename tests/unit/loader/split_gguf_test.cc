// A file cut into parts reads as the whole one, and each mistake names the part.
#include "src/loader/split_gguf.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/loader/file_source.h"
#include "src/loader/gguf_writer.h"

namespace llm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const char kWhole[] = INLAY_TEST_DATA "/gguf/llama_h256-KMIX_A.gguf";

// Parts of kWhole, as they are to be written.
struct Cut {
  int parts = 3;
  bool tensors_in_first = true;
  int64_t count = 3;        // what split.count says
  int64_t total_off = 0;    // what split.tensors.count says too much
  int swapped_no = -1;      // the part that calls itself 7
  int repeats_tensor = -1;  // the part that has the first part's first tensor too
};

class SplitGgufTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/split_gguf_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    auto file = OpenModelFile(kWhole);
    ASSERT_TRUE(file.ok()) << file.status();
    auto contents = ReadGgufHeader(**file, (*file)->size(), {});
    ASSERT_TRUE(contents.ok()) << contents.status();
    whole_file_ = *std::move(file);
    whole_ = *std::move(contents);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(int index, int parts = 3) const {
    char name[64];
    std::snprintf(name, sizeof(name), "/m-%05d-of-%05d.gguf", index + 1, parts);
    return folder_ + name;
  }

  void AddTensor(const TensorInfo& tensor, GgufWriter* writer, std::string* data) const {
    data->resize((data->size() + 31) / 32 * 32);
    writer->AddTensor(tensor.name, tensor.format, tensor.shape, data->size());
    std::string bytes(tensor.size_bytes, '\0');
    ASSERT_TRUE(whole_file_->Read(tensor.file_offset, tensor.size_bytes, bytes.data()).ok());
    *data += bytes;
  }

  void Write(const Cut& cut) const {
    const size_t first = cut.tensors_in_first ? 0 : 1;
    const size_t filled = static_cast<size_t>(cut.parts) - first;
    const size_t num_tensors = whole_.tensors.size();
    for (int p = 0; p < cut.parts; ++p) {
      GgufWriter writer;
      if (p == 0)
        writer.CopyValues(whole_.metadata->bytes().View(whole_.values),
                          whole_.metadata->entries().size());
      writer.AddInt("split.no", p == cut.swapped_no ? 7 : p);
      writer.AddInt("split.count", cut.count);
      writer.AddInt("split.tensors.count", static_cast<int64_t>(num_tensors) + cut.total_off);
      std::string data;
      const size_t i = static_cast<size_t>(p) - first;
      for (size_t t = 0; p >= static_cast<int>(first) && t < num_tensors; ++t) {
        if (t / ((num_tensors + filled - 1) / filled) == i)
          AddTensor(whole_.tensors[t], &writer, &data);
      }
      if (p == cut.repeats_tensor) AddTensor(whole_.tensors[0], &writer, &data);
      std::ofstream(Path(p), std::ios::binary) << writer.Finish() << data;
    }
  }

  std::string Error(int part = 0) const {
    const absl::Status status = OpenGgufParts(Path(part), {}).status();
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
    return std::string(status.message());
  }

  std::string folder_;
  std::unique_ptr<ModelFile> whole_file_;
  GgufContents whole_;
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
      EXPECT_EQ((*source)->tensors().size(), whole_.tensors.size());
      for (const TensorInfo& tensor : whole_.tensors) {
        const TensorInfo* found = (*source)->Find(tensor.name);
        ASSERT_NE(found, nullptr) << tensor.name;
        ASSERT_EQ(found->size_bytes, tensor.size_bytes);
        EXPECT_EQ(found->shape, tensor.shape);
        std::string expected(tensor.size_bytes, '\0'), got(tensor.size_bytes, '\1');
        ASSERT_TRUE(whole_file_->Read(tensor.file_offset, tensor.size_bytes, expected.data()).ok());
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
  EXPECT_EQ((*file)->size(), whole_file_->size());
  for (const char* name :
       {"/m.gguf", "/00001-of-00003.gguf", "/m-0001-of-00003.gguf", "/m-00001-of-00003.ggu"}) {
    std::filesystem::copy_file(kWhole, folder_ + name);
    EXPECT_TRUE(OpenGgufParts(folder_ + name, {}).ok()) << name;
  }
}

TEST_F(SplitGgufTest, BoundsTheTensorsOfAllParts) {
  Write({});
  LoaderLimits limits;
  limits.max_tensors = whole_.tensors.size() - 1;
  EXPECT_EQ(OpenGgufParts(Path(0), limits).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace llm
