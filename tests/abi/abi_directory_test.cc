// A model directory through the C ABI: opened, planned, listed, served and packed as a file is.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/abi/abi_fixture.h"
#include "tests/abi/pack_file.h"
#include "tests/support/hub_directory.h"

namespace llm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AbiDirectoryTest : public AbiTest {
 protected:
  void SetUp() override { llm_model_options_init(&options_); }

  llm_status OpenModel(const std::string& path) {
    llm_model_release(model_);
    model_ = nullptr;
    return llm_model_open(path.data(), path.size(), &options_, &model_);
  }
  // The ids of an answer of the open model.
  std::vector<int32_t> Generate() {
    Open(LLM_DRIVE_MANUAL);
    const llm_request request = Request(ids_);
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    std::vector<int32_t> ids;
    for (const llm_event& event : Poll()) {
      ids.insert(ids.end(), event.token_ids, event.token_ids + event.num_tokens);
    }
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
    engine_ = nullptr;
    return ids;
  }

  HubDirectory hub_;
  llm_model_options options_;
};

TEST_F(AbiDirectoryTest, OpensPlansListsAndServes) {
  ASSERT_EQ(OpenModel(hub_.path()), LLM_OK) << llm_last_error();
  llm_model_info info;
  llm_model_info_init(&info);
  ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
  EXPECT_EQ(info.vocab_size, 260);
  EXPECT_EQ(info.eos_id, 1);
  EXPECT_EQ(info.has_chat_template, 1u);
  EXPECT_EQ(info.num_tensors, 12u);
  const llm_model_source source = PathSource(hub_.path());
  llm_memory_plan plan;
  llm_memory_plan_init(&plan);
  ASSERT_EQ(llm_plan(&source, &options_, nullptr, &plan), LLM_OK) << llm_last_error();
  EXPECT_EQ(plan.weights_bytes, info.weights_bytes);
  EXPECT_EQ(Generate().size(), 4u);
}

TEST_F(AbiDirectoryTest, PacksToTheSameAnswers) {
  ASSERT_EQ(OpenModel(hub_.path()), LLM_OK) << llm_last_error();
  const std::vector<int32_t> expected = Generate();
  const std::string pack = hub_.path() + "/x.llmpack";
  const llm_model_source source = PathSource(hub_.path());
  ASSERT_EQ(llm_model_save(&source, &options_, pack.data(), pack.size()), LLM_OK)
      << llm_last_error();
  ASSERT_EQ(OpenModel(pack), LLM_OK) << llm_last_error();
  EXPECT_EQ(Generate(), expected);
}

TEST_F(AbiDirectoryTest, TellsWhatItsFilesProposeForSampling) {
  llm_model_sampling sampling;
  ASSERT_EQ(OpenModel(hub_.path()), LLM_OK) << llm_last_error();
  llm_model_sampling_init(&sampling);
  ASSERT_EQ(llm_model_get_sampling(model_, &sampling), LLM_OK);
  EXPECT_EQ(sampling.set, 0u);
  EXPECT_EQ(sampling.temperature, 0.0f);
  hub_.WriteJson("generation_config.json",
                 {{"do_sample", true}, {"temperature", 0.7}, {"top_k", 20}, {"top_p", 0.8}});
  const std::string pack = hub_.path() + "/x.llmpack";
  const llm_model_source source = PathSource(hub_.path());
  ASSERT_EQ(llm_model_save(&source, &options_, pack.data(), pack.size()), LLM_OK);
  for (const std::string& path : {hub_.path(), pack}) {
    ASSERT_EQ(OpenModel(path), LLM_OK) << llm_last_error();
    llm_model_sampling_init(&sampling);
    ASSERT_EQ(llm_model_get_sampling(model_, &sampling), LLM_OK);
    EXPECT_EQ(sampling.set, LLM_SAMPLING_TEMPERATURE | LLM_SAMPLING_TOP_K | LLM_SAMPLING_TOP_P);
    EXPECT_EQ(sampling.temperature, 0.7f);
    EXPECT_EQ(sampling.top_k, 20);
    EXPECT_EQ(sampling.top_p, 0.8f);
    EXPECT_EQ(sampling.min_p, 0.0f);
    sampling.struct_size = offsetof(llm_model_sampling, top_p);
    sampling.top_p = 5;
    ASSERT_EQ(llm_model_get_sampling(model_, &sampling), LLM_OK);
    EXPECT_EQ(sampling.top_p, 5.0f) << "not known to this caller";
  }
  EXPECT_EQ(llm_model_get_sampling(nullptr, &sampling), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_model_get_sampling(model_, nullptr), LLM_INVALID_ARGUMENT);
}

TEST_F(AbiDirectoryTest, SaysWhichFileAndKeyIsWrong) {
  hub_.config["sliding_chunk"] = 3;
  hub_.Save();
  EXPECT_EQ(OpenModel(hub_.path()), LLM_UNIMPLEMENTED);
  EXPECT_THAT(std::string(llm_last_error()),
              AllOf(HasSubstr(hub_.path()), HasSubstr("config.json: key sliding_chunk")));
  hub_.Remove("config.json");
  EXPECT_EQ(OpenModel(hub_.path()), LLM_NOT_FOUND);
  EXPECT_THAT(std::string(llm_last_error()), HasSubstr("config.json"));
}

TEST_F(AbiDirectoryTest, HoldsTheFilesToTheLimits) {
  llm_limits limits;
  llm_limits_init(&limits);
  limits.max_tensors = 5;
  options_.limits = &limits;
  EXPECT_EQ(OpenModel(hub_.path()), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(std::string(llm_last_error()), HasSubstr("limit of 5"));
  limits.max_tensors = 0;
  limits.max_header_bytes = 100;
  EXPECT_EQ(OpenModel(hub_.path()), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(std::string(llm_last_error()), HasSubstr("limit of 100"));
}

}  // namespace
}  // namespace llm
