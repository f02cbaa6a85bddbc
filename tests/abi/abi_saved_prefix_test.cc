// llm_prefix_save and llm_prefix_load: the answers of recomputation to the bit, and the reason of
// each refusal.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using testing::HasSubstr;

class AbiSavedPrefixTest : public testing::Test {
 protected:
  struct Answer {
    std::vector<int32_t> ids;
    std::vector<float> logprobs;
    int32_t cached_tokens = 0;
  };

  AbiSavedPrefixTest() {
    llm_model_options_init(&model_options_);
    llm_engine_options_init(&options_);
    options_.drive = LLM_DRIVE_MANUAL;
    options_.num_threads = 1;
    options_.kv_tokens = 512;
    options_.max_context_tokens = 256;
    options_.max_step_tokens = 48;
    for (int32_t i = 0; i < 150; ++i) prefix_.push_back(3 + i * 7 % 400);
    path_ = testing::TempDir() + "inlay-prefix-" + std::to_string(getpid());
  }
  ~AbiSavedPrefixTest() override {
    Close();
    std::filesystem::remove(path_);
  }
  void Open(const std::string& name = "llama_h64-Q4_1") {
    Close();
    const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/" + name + ".gguf";
    ASSERT_EQ(llm_model_open(path.data(), path.size(), &model_options_, &model_), LLM_OK)
        << llm_last_error();
    ASSERT_EQ(llm_engine_open(model_, &options_, &engine_), LLM_OK) << llm_last_error();
  }
  void Close() {
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
    llm_model_release(model_);
    engine_ = nullptr;
    model_ = nullptr;
  }
  llm_status Save() {
    llm_prefix prefix;
    llm_prefix_init(&prefix);
    prefix.prompt_ids = prefix_.data();
    prefix.num_prompt_ids = prefix_.size();
    return llm_prefix_save(engine_, &prefix, path_.data(), path_.size());
  }
  llm_status Load(llm_pin_id* pin = nullptr) {
    return llm_prefix_load(engine_, path_.data(), path_.size(), nullptr, &num_tokens_, pin);
  }
  // 12 greedy tokens behind the prefix and three more.
  Answer Generate() {
    std::vector<int32_t> prompt = prefix_;
    prompt.insert(prompt.end(), {9, 8, 7});
    llm_request request;
    llm_request_init(&request);
    request.prompt_ids = prompt.data();
    request.num_prompt_ids = prompt.size();
    request.max_new_tokens = 12;
    request.ignore_eos = LLM_ON;
    request.num_logprobs = 3;
    request.set = LLM_SET_NUM_LOGPROBS;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    for (uint32_t worked = 1; worked != 0;) EXPECT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
    Answer answer;
    llm_event event;
    size_t count = 1;
    while (llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, 0, &count) == LLM_OK &&
           count == 1) {
      answer.ids.insert(answer.ids.end(), event.token_ids, event.token_ids + event.num_tokens);
      for (size_t i = 0; i < event.num_tokens * event.logprobs_per_token; ++i) {
        answer.logprobs.push_back(event.logprobs[i].logprob);
      }
      if (event.stats != nullptr) answer.cached_tokens = event.stats->cached_tokens;
    }
    return answer;
  }
  std::string Bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  void Write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  void ExpectSameAnswer(const std::string& model) {
    Open(model);
    ASSERT_EQ(Save(), LLM_OK) << llm_last_error();
    Open(model);
    const Answer computed = Generate();
    EXPECT_EQ(computed.cached_tokens, 0);
    Open(model);
    ASSERT_EQ(Load(), LLM_OK) << llm_last_error();
    EXPECT_EQ(num_tokens_, 144u);
    const Answer loaded = Generate();
    EXPECT_EQ(loaded.cached_tokens, 144);
    EXPECT_EQ(loaded.ids, computed.ids);
    EXPECT_EQ(loaded.logprobs, computed.logprobs);
  }

  llm_model_options model_options_;
  llm_engine_options options_;
  llm_model* model_ = nullptr;
  llm_engine* engine_ = nullptr;
  std::vector<int32_t> prefix_;
  std::string path_;
  size_t num_tokens_ = 0;
};

TEST_F(AbiSavedPrefixTest, AnswersAreThoseOfRecomputationToTheBit) {
  for (const uint32_t dtype : {LLM_KV_F16, LLM_KV_FP8_E4M3, LLM_KV_INT8}) {
    options_.kv_dtype = dtype;
    ExpectSameAnswer("llama_h64-Q4_1");
    ExpectSameAnswer("gemma3_text-Q4_1");  // with windows of 32
  }
}

TEST_F(AbiSavedPrefixTest, APinHoldsWhatWasLoaded) {
  Open();
  ASSERT_EQ(Save(), LLM_OK) << llm_last_error();
  Open();
  llm_pin_id pin = 0;
  ASSERT_EQ(Load(&pin), LLM_OK) << llm_last_error();
  ASSERT_EQ(llm_cache_flush(engine_), LLM_OK);
  EXPECT_EQ(Generate().cached_tokens, 144);
  EXPECT_EQ(llm_prefix_unpin(engine_, pin), LLM_OK);
}

TEST_F(AbiSavedPrefixTest, EachDifferenceIsNamed) {
  Open();
  ASSERT_EQ(Save(), LLM_OK) << llm_last_error();
  const auto expect_refused = [&](const char* why) {
    EXPECT_EQ(Load(), LLM_FAILED_PRECONDITION) << why;
    EXPECT_THAT(llm_last_error(), HasSubstr(why));
    EXPECT_THAT(llm_last_error(), HasSubstr(path_));
  };
  Open("llama_h64-F16");
  expect_refused("saved for model ");
  model_options_.kernels = Str("reference");
  Open();
  expect_refused("this engine has reference:");
  model_options_.kernels = {nullptr, 0};
  model_options_.float_activations = LLM_ON;
  Open();
  expect_refused(":float");
  model_options_.float_activations = 0;
  options_.kv_dtype = LLM_KV_F32;
  Open();
  expect_refused("saved for kv_dtype f16, this engine has f32");
  options_.kv_dtype = 0;
  options_.block_size = 32;
  Open();
  expect_refused("saved for block_size 16, this engine has 32");
  options_.block_size = 0;
  options_.max_context_tokens = 128;
  Open();
  expect_refused("holds 144 tokens, this engine's context is 128");
  options_.max_context_tokens = 256;
  options_.prefix_cache = LLM_OFF;
  Open();
  EXPECT_EQ(Load(), LLM_FAILED_PRECONDITION);
  EXPECT_THAT(llm_last_error(), HasSubstr("no prefix cache"));
  options_.prefix_cache = 0;
  Open();
  std::string bytes = Bytes();
  bytes[8] = 2;
  Write(bytes);
  expect_refused("format version 2, this library reads 1 alone");
}

TEST_F(AbiSavedPrefixTest, ADamagedOrCutFileIsRefusedAndChangesNothing) {
  Open();
  ASSERT_EQ(Save(), LLM_OK) << llm_last_error();
  const std::string bytes = Bytes();
  ASSERT_GT(bytes.size(), 136u);
  const size_t stride = std::max<size_t>(1, bytes.size() / 500);
  for (size_t at = 0; at < bytes.size(); at += at < 1000 ? 1 : stride) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Write(damaged);
    EXPECT_NE(Load(), LLM_OK) << "byte " << at;
    if (at >= 136) {
      EXPECT_EQ(Load(), LLM_DATA_LOSS) << "byte " << at;
    }
  }
  for (size_t size : {size_t{0}, size_t{7}, size_t{135}, size_t{136}, bytes.size() - 1}) {
    Write(bytes.substr(0, size));
    EXPECT_EQ(Load(), LLM_DATA_LOSS) << size << " bytes";
  }
  EXPECT_EQ(Generate().cached_tokens, 144) << "what the save itself has cached, and no more";
}

TEST_F(AbiSavedPrefixTest, BadArgumentsAndPathsAreNamed) {
  Open();
  EXPECT_EQ(Load(), LLM_NOT_FOUND);
  EXPECT_THAT(llm_last_error(), HasSubstr(path_));
  EXPECT_EQ(llm_prefix_save(nullptr, nullptr, nullptr, 0), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_prefix_load(nullptr, nullptr, 0, nullptr, nullptr, nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_prefix_load(engine_, path_.data(), 0, nullptr, nullptr, nullptr),
            LLM_INVALID_ARGUMENT);
  Write("no saved prefix, but long enough to hold the header of one: " + std::string(100, 'x'));
  EXPECT_EQ(Load(), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("does not begin as a saved prefix"));
  prefix_.resize(15);
  EXPECT_EQ(Save(), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("15 tokens are less than a block of 16"));
  prefix_.resize(16, 5);
  path_ = "/no/such/folder/prefix";
  EXPECT_EQ(Save(), LLM_NOT_FOUND);
}

TEST_F(AbiSavedPrefixTest, OnlyTheOwnerReadsTheFileAndNothingButAFileIsReplaced) {
  Open();
  ASSERT_EQ(Save(), LLM_OK) << llm_last_error();
  struct stat there;
  ASSERT_EQ(stat(path_.c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 0777, 0600u);
  std::remove(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Save(), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr(path_ + ": something else than a file"));
  ASSERT_EQ(stat(path_.c_str(), &there), 0);
  EXPECT_TRUE(S_ISFIFO(there.st_mode));
}

TEST_F(AbiSavedPrefixTest, EvictedBlocksComeBackFromTheSpillFolder) {
  const std::string folder = testing::TempDir();
  options_.kv_tokens = 256;
  options_.spill_folder = {folder.data(), folder.size()};
  Open();
  const Answer computed = Generate();
  const std::vector<int32_t> first = prefix_;
  for (int32_t& id : prefix_) id += 3;
  Generate();  // takes the first one's blocks
  prefix_ = first;
  const Answer again = Generate();
  EXPECT_EQ(again.ids, computed.ids);
  EXPECT_EQ(again.logprobs, computed.logprobs);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_GT(metrics.spilled_blocks_total, 0u);
  EXPECT_GT(metrics.spill_written_bytes_total, 0u);
  EXPECT_GT(metrics.spilled_blocks_current, 0u);
  EXPECT_EQ(metrics.spill_failed_blocks_total, 0u);
}

TEST_F(AbiSavedPrefixTest, ASpillFolderThatCannotBeUsedIsNamed) {
  Open();
  llm_engine* engine = nullptr;
  options_.spill_folder = Str("/no/such/folder");
  EXPECT_EQ(llm_engine_open(model_, &options_, &engine), LLM_NOT_FOUND);
  EXPECT_THAT(llm_last_error(), HasSubstr("/no/such/folder"));
  options_.spill_folder = Str("/tmp");
  options_.spill_bytes = 100;
  EXPECT_EQ(llm_engine_open(model_, &options_, &engine), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("spill_bytes: 100"));
}

}  // namespace
}  // namespace llm
