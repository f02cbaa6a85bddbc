// llm_model_save and what opens from it: the same answers, from everywhere a model opens from.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/abi/pack_file.h"
#include "tests/support/split_file.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

struct Answer {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;

  bool operator==(const Answer&) const = default;
};

class AbiPackTest : public OpenedModelTest {
 protected:
  // 24 greedy tokens of the open model with their log-probabilities and those of the prompt.
  Answer Generate() {
    Answer answer;
    llm_engine* engine = NewEngine(2);
    const std::vector<int32_t> prompt = SomeIds();
    llm_request request;
    llm_request_init(&request);
    request.prompt_ids = prompt.data();
    request.num_prompt_ids = prompt.size();
    request.max_new_tokens = 24;
    request.ignore_eos = LLM_ON;
    request.num_logprobs = 3;
    request.num_prompt_logprobs = 1;
    request.set = LLM_SET_NUM_LOGPROBS | LLM_SET_NUM_PROMPT_LOGPROBS;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine, &request, &id), LLM_OK) << llm_last_error();
    for (uint32_t worked = 1; worked != 0;) EXPECT_EQ(llm_engine_step(engine, &worked), LLM_OK);
    Collect(engine, &answer);
    EXPECT_EQ(llm_engine_close(engine), LLM_OK);
    EXPECT_EQ(answer.ids.size(), 24u + 38u);
    return answer;
  }
  static void Collect(llm_engine* engine, Answer* answer) {
    llm_event events[16];
    size_t count = 0;
    do {
      EXPECT_EQ(llm_poll(llm_engine_queue(engine), events, sizeof(events[0]), 16, 0, &count),
                LLM_OK);
      for (size_t i = 0; i < count; ++i) {
        const llm_event& event = events[i];
        answer->ids.insert(answer->ids.end(), event.token_ids, event.token_ids + event.num_tokens);
        for (size_t k = 0; k < event.num_tokens * event.logprobs_per_token; ++k) {
          const char* at = reinterpret_cast<const char*>(event.logprobs) + k * event.logprob_size;
          answer->logprobs.push_back(reinterpret_cast<const llm_logprob*>(at)->logprob);
        }
      }
    } while (count > 0);
  }
  Answer AnswerOf(const std::string& path) {
    EXPECT_EQ(Open(path), LLM_OK) << llm_last_error();
    return model_ != nullptr ? Generate() : Answer();
  }
  llm_status Save(const std::string& model, const std::string& path) {
    const llm_model_source source = PathSource(model);
    return llm_model_save(&source, &options_, path.data(), path.size());
  }
  void ExpectSameAnswers(const std::string& model) {
    const Answer expected = AnswerOf(model);
    const std::string pack = folder_.File("same.llmpack");
    ASSERT_EQ(Save(model, pack), LLM_OK) << llm_last_error();
    EXPECT_EQ(AnswerOf(pack), expected) << "read";
    options_.map_pack = LLM_ON;
    EXPECT_EQ(AnswerOf(pack), expected) << "mapped";
    options_.map_pack = 0;
  }

  const std::string tiny_ = TestModel("llama_h64-Q4_1.gguf");
};

TEST_F(AbiPackTest, AnswersAreThoseOfTheModelFileForEveryFormatAndBackend) {
  for (const char* kernels : {"", "avx512", "avx2", "generic", "reference"}) {
    options_.kernels = Str(kernels);
    if (Open(tiny_) == LLM_INVALID_ARGUMENT) continue;  // this machine has no such backend
    for (const auto& entry : std::filesystem::directory_iterator(TestModel(""))) {
      if (entry.path().extension() != ".gguf") continue;
      SCOPED_TRACE(std::string(kernels) + " " + entry.path().filename().string());
      ExpectSameAnswers(entry.path().string());
    }
  }
}

TEST_F(AbiPackTest, AnswersOfRealModelsAreThoseOfTheModelFile) {
  bool any = false;
  for (const char* name : {"INLAY_SMOLLM2", "INLAY_GEMMA3"}) {
    const char* path = std::getenv(name);
    if (path == nullptr) continue;
    any = true;
    SCOPED_TRACE(name);
    ExpectSameAnswers(path);
  }
  if (!any) GTEST_SKIP() << "INLAY_SMOLLM2 and INLAY_GEMMA3 are not set";
}

TEST_F(AbiPackTest, OpensFromDescriptorMemoryAndCallback) {
  const Answer expected = AnswerOf(tiny_);
  const std::string pack = folder_.Pack(tiny_, "");
  std::string bytes = ReadWhole(pack);
  const std::string inside = folder_.File("inside");
  WriteWhole(inside, std::string(128, 'x') + bytes + "after");
  for (const uint32_t mapped : {LLM_OFF, LLM_ON}) {
    options_.map_pack = mapped;
    const int fd = open(inside.c_str(), O_RDONLY | O_CLOEXEC);
    llm_model_release(model_);
    model_ = nullptr;
    ASSERT_EQ(llm_model_open_fd(fd, 128, bytes.size(), &options_, &model_), LLM_OK)
        << llm_last_error();
    EXPECT_EQ(close(fd), 0) << "it stays the caller's";
    EXPECT_EQ(Generate(), expected);
  }
  options_.map_pack = 0;
  const auto read = [](void* user_data, uint64_t offset, void* buffer, uint64_t size) {
    const std::string& file = *static_cast<std::string*>(user_data);
    return static_cast<int64_t>(file.copy(static_cast<char*>(buffer), size, offset));
  };
  llm_model_release(model_);
  ASSERT_EQ(llm_model_open_reader(read, &bytes, bytes.size(), &options_, &model_), LLM_OK);
  EXPECT_EQ(Generate(), expected);
  llm_model_release(model_);
  ASSERT_EQ(llm_model_open_memory(bytes.data(), bytes.size(), &options_, &model_), LLM_OK);
  std::fill(bytes.begin(), bytes.end(), '\0');
  EXPECT_EQ(Generate(), expected) << "read during the call alone";
}

TEST_F(AbiPackTest, MapsOnlyPacksOnDisk) {
  const std::string pack = folder_.Pack(tiny_, "");
  const std::string bytes = ReadWhole(pack);
  options_.map_pack = LLM_ON;
  EXPECT_EQ(llm_model_open_memory(bytes.data(), bytes.size(), &options_, &model_),
            LLM_FAILED_PRECONDITION);
  EXPECT_THAT(llm_last_error(), HasSubstr("map_pack"));
  EXPECT_EQ(Open(tiny_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("map_pack: the model is no pack"));
  const std::string askew = folder_.File("askew");
  WriteWhole(askew, "x" + bytes);
  const int fd = open(askew.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(llm_model_open_fd(fd, 1, bytes.size(), &options_, &model_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("no multiple of 64"));
  close(fd);
  options_.map_pack = 7;
  EXPECT_EQ(Open(pack), LLM_INVALID_ARGUMENT);
}

TEST_F(AbiPackTest, TellsWhatItsModelTells) {
  const std::string pack = folder_.Pack(tiny_, "");
  llm_model_info info[2];
  std::vector<std::string> metadata[2], names[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Open(i == 0 ? tiny_ : pack), LLM_OK) << llm_last_error();
    llm_model_info_init(&info[i]);
    ASSERT_EQ(llm_model_get_info(model_, &info[i]), LLM_OK);
    for (uint64_t k = 0; k < info[i].num_metadata; ++k) {
      llm_string key, value;
      ASSERT_EQ(llm_model_metadata(model_, k, &key, &value), LLM_OK);
      metadata[i].push_back(std::string(key.data, key.size) + std::string(value.data, value.size));
    }
    for (uint64_t k = 0; k < info[i].num_tensors; ++k) {
      llm_tensor_info tensor;
      llm_tensor_info_init(&tensor);
      ASSERT_EQ(llm_model_tensor(model_, k, &tensor), LLM_OK);
      names[i].push_back(std::string(tensor.name.data, tensor.name.size) + tensor.type.data);
    }
  }
  EXPECT_EQ(metadata[0], metadata[1]);
  EXPECT_EQ(names[0], names[1]);
  EXPECT_EQ(info[0].weights_bytes, info[1].weights_bytes);
  EXPECT_EQ(info[0].tokenizer_bytes, info[1].tokenizer_bytes);
  EXPECT_EQ(info[0].has_chat_template, info[1].has_chat_template);
  EXPECT_EQ(info[1].repack_ns, 0u);
  EXPECT_GT(info[1].read_ns, 0u);
  EXPECT_GT(info[1].tokenizer_ns, 0u);
}

struct Progress {
  std::vector<uint64_t> done;
  uint64_t total = 0;
  uint64_t cancel_at = UINT64_MAX;

  static int32_t Call(void* user_data, uint64_t done_bytes, uint64_t total_bytes) {
    Progress& progress = *static_cast<Progress*>(user_data);
    progress.done.push_back(done_bytes);
    progress.total = total_bytes;
    return done_bytes >= progress.cancel_at ? 1 : 0;
  }
};

TEST_F(AbiPackTest, ProgressReachesTheWholeAndCancels) {
  const std::string pack = folder_.File("model.llmpack");
  Progress progress;
  options_.progress = &Progress::Call;
  options_.progress_user_data = &progress;
  ASSERT_EQ(Save(tiny_, pack), LLM_OK) << llm_last_error();
  EXPECT_TRUE(std::is_sorted(progress.done.begin(), progress.done.end()));
  EXPECT_EQ(progress.done.back(), progress.total);
  for (const uint64_t at : {uint64_t{0}, progress.total / 2 + 1, progress.total}) {
    const size_t num_files = folder_.NumFiles();
    Progress cancelling;
    cancelling.cancel_at = at;
    options_.progress_user_data = &cancelling;
    EXPECT_EQ(Save(tiny_, folder_.File("never")), LLM_CANCELLED);
    EXPECT_EQ(folder_.NumFiles(), num_files) << "cancelled at " << at;
  }
  progress = {};
  options_.progress_user_data = &progress;
  ASSERT_EQ(Open(pack), LLM_OK);
  EXPECT_EQ(progress.done.back(), progress.total);
  progress.cancel_at = 0;
  EXPECT_EQ(Open(pack), LLM_CANCELLED);
}

TEST_F(AbiPackTest, ASaveThatFailsLeavesWhatWasThere) {
  const std::string pack = folder_.File("model.llmpack");
  WriteWhole(pack, "before");
  EXPECT_EQ(Save(folder_.File("none.gguf"), pack), LLM_NOT_FOUND);
  EXPECT_EQ(Save(pack, pack), LLM_INVALID_ARGUMENT);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {100000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(Save(tiny_, pack), LLM_RESOURCE_EXHAUSTED) << "and no SIGXFSZ";
  EXPECT_THAT(llm_last_error(), HasSubstr(pack));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(ReadWhole(pack), "before");
  EXPECT_EQ(folder_.NumFiles(), 1u);
  ASSERT_EQ(Save(tiny_, pack), LLM_OK) << llm_last_error();
  EXPECT_EQ(folder_.NumFiles(), 1u);
  EXPECT_EQ(Save(pack, folder_.File("again")), LLM_FAILED_PRECONDITION);
  EXPECT_THAT(llm_last_error(), HasSubstr("a pack already"));
}

TEST_F(AbiPackTest, WrongPlacesAreNamed) {
  EXPECT_EQ(Save(tiny_, "/no/such/folder/x"), LLM_NOT_FOUND);
  EXPECT_THAT(llm_last_error(), HasSubstr("/no/such/folder/x"));
  const std::string folder = folder_.File("folder");
  ASSERT_EQ(mkdir(folder.c_str(), 0777), 0);
  EXPECT_NE(Save(tiny_, folder), LLM_OK);
  EXPECT_EQ(folder_.NumFiles(), 1u);
  EXPECT_EQ(llm_model_save(nullptr, &options_, "x", 1), LLM_INVALID_ARGUMENT);
  const llm_model_source source = PathSource(tiny_);
  EXPECT_EQ(llm_model_save(&source, &options_, nullptr, 1), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_model_save(&source, &options_, "x", 0), LLM_INVALID_ARGUMENT);
  if (geteuid() == 0) return;  // may write everywhere
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  EXPECT_EQ(Save(tiny_, folder + "/x"), LLM_PERMISSION_DENIED);
}

TEST_F(AbiPackTest, APackOfAFileInPartsAnswersAsTheWholeFile) {
  const SplitFile split(tiny_, folder_.path());
  split.Write({});
  const Answer expected = AnswerOf(tiny_);
  const std::string pack = folder_.File("model.llmpack");
  for (int named = 0; named < 3; ++named) {
    ASSERT_EQ(Save(split.Path(named), pack), LLM_OK) << llm_last_error();
    EXPECT_EQ(AnswerOf(pack), expected);
  }
  options_.verify_pack = LLM_ON;
  EXPECT_EQ(Open(pack), LLM_OK) << llm_last_error();
}

TEST_F(AbiPackTest, APackOfOneModelIsTheSameBytesEveryTime) {
  const std::string first = ReadWhole(folder_.Pack(tiny_, ""));
  options_.num_threads = 1;
  const std::string path = folder_.File("again");
  ASSERT_EQ(Save(tiny_, path), LLM_OK);
  EXPECT_EQ(ReadWhole(path), first);
}

TEST_F(AbiPackTest, ThePlanIsWhatTheOpenTakes) {
  const std::string pack = folder_.Pack(tiny_, "");
  const llm_model_source source = PathSource(pack);
  llm_memory_plan plan;
  llm_memory_plan_init(&plan);
  ASSERT_EQ(llm_plan(&source, &options_, nullptr, &plan), LLM_OK) << llm_last_error();
  EXPECT_EQ(plan.loading_bytes, 0u);
  options_.max_memory_bytes = plan.weights_bytes;
  EXPECT_EQ(Open(pack), LLM_OK) << llm_last_error();
  options_.max_memory_bytes = plan.weights_bytes - 1;
  EXPECT_EQ(Open(pack), LLM_RESOURCE_EXHAUSTED);
  EXPECT_EQ(llm_plan(&source, &options_, nullptr, &plan), LLM_RESOURCE_EXHAUSTED);
  options_.map_pack = LLM_ON;
  EXPECT_EQ(Open(pack), LLM_OK) << "a mapping is not counted: " << llm_last_error();
  EXPECT_EQ(llm_plan(&source, &options_, nullptr, &plan), LLM_OK) << llm_last_error();
}

TEST_F(AbiPackTest, AHeaderOnlyPackTellsAndTokenizes) {
  const std::string pack = folder_.Pack(tiny_, "");
  options_.header_only = LLM_ON;
  ASSERT_EQ(Open(pack), LLM_OK) << llm_last_error();
  size_t count = 0;
  EXPECT_EQ(llm_tokenize(model_, "the", 3, 0, nullptr, 0, &count), LLM_OK);
  EXPECT_GT(count, 0u);
  llm_engine* engine = nullptr;
  EXPECT_EQ(llm_engine_open(model_, nullptr, &engine), LLM_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace llm
