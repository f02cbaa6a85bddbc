#include "src/loader/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/loader/gguf_reader.h"
#include "tests/unit/loader/gguf_builder.h"

namespace llm {
namespace {

using testing::HasSubstr;

class ModelFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "model_file_test_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    unlink(Path().c_str());
    rmdir(folder_.c_str());
  }
  std::string Path() const { return folder_ + "/model"; }
  void Write(const std::string& bytes) { std::ofstream(Path(), std::ios::binary) << bytes; }

  std::string folder_;
};

TEST_F(ModelFileTest, ReadsAnyRangeOfAFileOnDisk) {
  Write("0123456789");
  auto file = OpenModelFile(Path());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 10u);
  EXPECT_EQ((*file)->name(), Path());
  char bytes[10] = {};
  ASSERT_TRUE((*file)->Read(3, 4, bytes).ok());
  EXPECT_STREQ(bytes, "3456");
  EXPECT_TRUE((*file)->Read(10, 0, bytes).ok());
}

TEST_F(ModelFileTest, NamesFileOffsetAndSizeOfAReadBeyondTheEnd) {
  Write("0123456789");
  auto file = OpenModelFile(Path());
  ASSERT_TRUE(file.ok()) << file.status();
  char bytes[16];
  for (uint64_t offset : {uint64_t{8}, uint64_t{11}, ~uint64_t{0}}) {
    const absl::Status status = (*file)->Read(offset, 3, bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path()));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("3 bytes at offset " + std::to_string(offset)));
  }
}

TEST_F(ModelFileTest, ReportsDataLossWhenTheFileHasBecomeShorter) {
  Write(GgufBuilder().Tensor("t", {32}, 0, 0).Build(std::string(128, 'x')));
  auto file = OpenModelFile(Path());
  ASSERT_TRUE(file.ok()) << file.status();
  auto source = OpenGguf(*std::move(file), {});
  ASSERT_TRUE(source.ok()) << source.status();
  const TensorInfo& tensor = *(*source)->Find("t");
  ASSERT_EQ(truncate(Path().c_str(), static_cast<off_t>(tensor.file_offset + 64)), 0);
  char bytes[128];
  EXPECT_TRUE((*source)->Read(tensor, 0, 64, bytes).ok());
  const absl::Status status = (*source)->Read(tensor, 0, 128, bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has become shorter"));
}

TEST_F(ModelFileTest, RefusesAMissingFileADirectoryAndAPipe) {
  const absl::Status missing = OpenModelFile(Path()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(Path()));
  const absl::Status directory = OpenModelFile(folder_).status();
  EXPECT_EQ(directory.code(), absl::StatusCode::kInvalidArgument) << directory;
  EXPECT_THAT(std::string(directory.message()), HasSubstr("a directory"));
  ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
  EXPECT_EQ(OpenModelFile(Path()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenModelFile(Path() + "/below").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(OpenModelFile("").ok());
  EXPECT_FALSE(OpenModelFile(std::string("/dev/null\0x", 11)).ok());
}

TEST_F(ModelFileTest, ReportsAFileThatMayNotBeRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  Write("secret");
  ASSERT_EQ(chmod(Path().c_str(), 0), 0);
  EXPECT_EQ(OpenModelFile(Path()).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ModelFileTest, ServesManyThreadsAtOnce) {
  std::string bytes(1 << 16, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  Write(bytes);
  auto file = OpenModelFile(Path());
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t offset = t; offset + 100 < bytes.size(); offset += 997) {
        char read[100];
        ASSERT_TRUE((*file)->Read(offset, sizeof(read), read).ok());
        ASSERT_EQ(bytes.compare(offset, sizeof(read), read, sizeof(read)), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ModelFileTest, ReadsAPartOfAnOpenDescriptorAndLeavesItOpen) {
  Write("0123456789");
  const int fd = open(Path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  {
    auto file = DescriptorModelFile(fd, 2, 5);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->size(), 5u);
    char read[3] = {};
    ASSERT_TRUE((*file)->Read(3, 2, read).ok());
    EXPECT_STREQ(read, "56");
    EXPECT_EQ((*file)->Read(4, 2, read).code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(lseek(fd, 0, SEEK_CUR), 0) << "open, and where it was";
  EXPECT_EQ((*DescriptorModelFile(fd, 4, 0))->size(), 6u) << "size 0: up to the end";
  EXPECT_EQ(DescriptorModelFile(fd, 4, 7).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DescriptorModelFile(fd, 11, 0).status().code(), absl::StatusCode::kInvalidArgument);
  close(fd);
  EXPECT_EQ(DescriptorModelFile(fd, 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DescriptorModelFile(-1, 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

// Gives three bytes a call at most, and what `result` says once it is not 0.
struct Reader {
  std::string bytes = "0123456789";
  int64_t result = 0;
  bool throws = false;

  static int64_t Read(void* user_data, uint64_t offset, void* buffer, uint64_t size) {
    const Reader& reader = *static_cast<Reader*>(user_data);
    if (reader.throws) throw std::runtime_error("reader");
    if (reader.result != 0) return reader.result;
    return static_cast<int64_t>(reader.bytes.copy(
        static_cast<char*>(buffer), std::min<uint64_t>(size, 3), static_cast<size_t>(offset)));
  }
};

TEST(CallbackModelFileTest, AsksUntilAllBytesAreThere) {
  Reader reader;
  const auto file = CallbackModelFile(&Reader::Read, &reader, 10);
  char read[9] = {};
  ASSERT_TRUE(file->Read(1, 8, read).ok());
  EXPECT_STREQ(read, "12345678");
  EXPECT_EQ(file->Read(9, 2, read).code(), absl::StatusCode::kDataLoss);
}

TEST(CallbackModelFileTest, SaysHowTheCallbackFailed) {
  Reader reader;
  const auto file = CallbackModelFile(&Reader::Read, &reader, 12);
  char read[12] = {};
  EXPECT_EQ(file->Read(8, 4, read).code(), absl::StatusCode::kDataLoss) << "ends early";
  reader.result = -EACCES;
  EXPECT_EQ(file->Read(0, 4, read).code(), absl::StatusCode::kPermissionDenied);
  reader.result = INT64_MIN;
  EXPECT_FALSE(file->Read(0, 4, read).ok());
  reader.result = 5;
  const absl::Status more = file->Read(0, 4, read);
  EXPECT_EQ(more.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(more.message()), HasSubstr("returned 5 bytes, asked for 4"));
  reader.throws = true;
  EXPECT_EQ(file->Read(0, 4, read).code(), absl::StatusCode::kInternal);
}

TEST(MemoryModelFileTest, ReadsWithinItsBytesOnly) {
  const std::string bytes = "0123456789";
  std::unique_ptr<ModelFile> file = MemoryModelFile(bytes.data(), bytes.size(), "memory");
  char read[4] = {};
  ASSERT_TRUE(file->Read(7, 3, read).ok());
  EXPECT_STREQ(read, "789");
  EXPECT_EQ(file->Read(8, 3, read).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(MemoryModelFile(nullptr, 0, "empty")->Read(0, 0, nullptr).ok());
}

}  // namespace
}  // namespace llm
