// Models from a descriptor, memory and a callback; progress, cancel and limits.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiSourceTest : public AbiTest {
 protected:
  void SetUp() override {
    path_ = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
    std::ifstream file(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    ASSERT_FALSE(bytes_.empty());
    llm_model_options_init(&options_);
    options_.kernels = Str("reference");
  }

  // The greedy answer of the model that is open.
  std::vector<int32_t> Answer() {
    Open(LLM_DRIVE_MANUAL);
    const llm_request request = Request(ids_);
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    std::vector<int32_t> answer;
    for (const llm_event& event : Poll()) {
      answer.insert(answer.end(), event.token_ids, event.token_ids + event.num_tokens);
    }
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
    engine_ = nullptr;
    return answer;
  }
  std::vector<int32_t> AnswerFromPath() {
    EXPECT_EQ(llm_model_open(path_.data(), path_.size(), &options_, &model_), LLM_OK);
    const std::vector<int32_t> answer = Answer();
    llm_model_release(model_);
    model_ = nullptr;
    return answer;
  }

  std::string path_;
  std::string bytes_;
  llm_model_options options_;
};

TEST_F(AbiSourceTest, AModelOpensFromAPartOfADescriptor) {
  const std::vector<int32_t> expected = AnswerFromPath();
  const std::string path = testing::TempDir() + "abi_source_test.bin";
  std::ofstream(path, std::ios::binary) << "before" << bytes_ << "after";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  unlink(path.c_str());
  ASSERT_EQ(llm_model_open_fd(fd, 6, bytes_.size(), &options_, &model_), LLM_OK)
      << llm_last_error();
  EXPECT_EQ(close(fd), 0) << "it stays the caller's";
  EXPECT_EQ(Answer(), expected);
}

TEST_F(AbiSourceTest, AModelOpensFromMemoryThatIsGoneAfterwards) {
  const std::vector<int32_t> expected = AnswerFromPath();
  ASSERT_EQ(llm_model_open_memory(bytes_.data(), bytes_.size(), &options_, &model_), LLM_OK)
      << llm_last_error();
  std::fill(bytes_.begin(), bytes_.end(), '\0');
  EXPECT_EQ(Answer(), expected);
}

int64_t ReadBytes(void* user_data, uint64_t offset, void* buffer, uint64_t size) {
  return static_cast<int64_t>(static_cast<std::string*>(user_data)->copy(
      static_cast<char*>(buffer), size, static_cast<size_t>(offset)));
}

TEST_F(AbiSourceTest, AModelOpensThroughACallback) {
  const std::vector<int32_t> expected = AnswerFromPath();
  ASSERT_EQ(llm_model_open_reader(&ReadBytes, &bytes_, bytes_.size(), &options_, &model_), LLM_OK)
      << llm_last_error();
  EXPECT_EQ(Answer(), expected);
}

TEST_F(AbiSourceTest, ACallbackThatEndsEarlyIsDataLoss) {
  const uint64_t claimed = bytes_.size();
  bytes_.resize(bytes_.size() - 1);
  EXPECT_EQ(llm_model_open_reader(&ReadBytes, &bytes_, claimed, &options_, &model_), LLM_DATA_LOSS);
  EXPECT_EQ(model_, nullptr);
}

TEST_F(AbiSourceTest, WrongSourcesAreNamed) {
  EXPECT_EQ(llm_model_open_fd(-1, 0, 0, &options_, &model_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("descriptor -1"));
  EXPECT_EQ(llm_model_open_memory(nullptr, 5, &options_, &model_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("data"));
  EXPECT_EQ(llm_model_open_reader(nullptr, nullptr, 5, &options_, &model_), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_model_open_memory("GGUF", 4, &options_, &model_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("memory"));
}

struct Progress {
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
  int32_t result = 0;

  static int32_t Call(void* user_data, uint64_t done_bytes, uint64_t total_bytes) {
    Progress& progress = *static_cast<Progress*>(user_data);
    EXPECT_GE(done_bytes, progress.done_bytes);
    progress.done_bytes = done_bytes;
    progress.total_bytes = total_bytes;
    return progress.result;
  }
};

TEST_F(AbiSourceTest, ProgressReachesTheWhole) {
  Progress progress;
  options_.progress = &Progress::Call;
  options_.progress_user_data = &progress;
  ASSERT_EQ(llm_model_open(path_.data(), path_.size(), &options_, &model_), LLM_OK);
  EXPECT_GT(progress.total_bytes, 0u);
  EXPECT_EQ(progress.done_bytes, progress.total_bytes);
}

TEST_F(AbiSourceTest, ProgressCancelsTheOpen) {
  Progress progress;
  progress.result = 1;
  options_.progress = &Progress::Call;
  options_.progress_user_data = &progress;
  EXPECT_EQ(llm_model_open(path_.data(), path_.size(), &options_, &model_), LLM_CANCELLED);
  EXPECT_THAT(llm_last_error(), HasSubstr("progress"));
  EXPECT_EQ(model_, nullptr);
}

TEST_F(AbiSourceTest, LimitsBoundWhatAFileMayClaim) {
  const auto refused = [&](uint64_t llm_limits::*field, uint64_t value) {
    llm_limits limits;
    llm_limits_init(&limits);
    limits.*field = value;
    options_.limits = &limits;
    EXPECT_EQ(llm_model_open(path_.data(), path_.size(), &options_, &model_), LLM_INVALID_ARGUMENT);
    EXPECT_THAT(llm_last_error(), HasSubstr("limit"));
  };
  refused(&llm_limits::max_header_bytes, 1000);
  refused(&llm_limits::max_tensors, 2);
  refused(&llm_limits::max_metadata_entries, 3);
  refused(&llm_limits::max_array_elements, 100);
  refused(&llm_limits::max_string_bytes, 2);
  llm_limits limits;
  llm_limits_init(&limits);
  options_.limits = &limits;
  EXPECT_EQ(llm_model_open(path_.data(), path_.size(), &options_, &model_), LLM_OK);
}

}  // namespace
}  // namespace llm
