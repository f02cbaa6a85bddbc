// Weights quantised when a model opens or is saved, through the C ABI.
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <vector>

#include "tests/abi/pack_file.h"
#include "tests/support/split_file.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiQuantizeTest : public OpenedModelTest {
 protected:
  llm_status SaveGguf(const std::string& path) {
    const llm_model_source source = PathSource(tiny_);
    return llm_model_save_gguf(&source, &options_, path.data(), path.size());
  }
  void ExpectRefused(llm_status status, const char* message) {
    const llm_model_source source = PathSource(tiny_);
    llm_memory_plan plan;
    llm_memory_plan_init(&plan);
    EXPECT_EQ(Open(tiny_), status);
    EXPECT_THAT(llm_last_error(), HasSubstr(message));
    EXPECT_EQ(llm_plan(&source, &options_, nullptr, &plan), status) << message;
    llm_model_options_init(&options_);
  }

  // Log-probabilities of some text by the open model.
  std::vector<float> Score() {
    llm_engine* engine = NewEngine(1);
    const std::vector<int32_t> ids = SomeIds();
    llm_score_request request;
    llm_score_request_init(&request);
    request.ids = ids.data();
    request.num_ids = ids.size();
    std::vector<float> logprobs(ids.size() - 1);
    size_t count = 0;
    EXPECT_EQ(llm_score(engine, &request, logprobs.data(), logprobs.size(), &count), LLM_OK)
        << llm_last_error();
    EXPECT_EQ(llm_engine_close(engine), LLM_OK);
    return logprobs;
  }
  std::map<std::string, int> Types() {
    llm_model_info info;
    llm_model_info_init(&info);
    EXPECT_EQ(llm_model_get_info(model_, &info), LLM_OK);
    std::map<std::string, int> types;
    for (uint64_t i = 0; i < info.num_tensors; ++i) {
      llm_tensor_info tensor;
      llm_tensor_info_init(&tensor);
      EXPECT_EQ(llm_model_tensor(model_, i, &tensor), LLM_OK);
      ++types[std::string(tensor.type.data, tensor.type.size)];
    }
    return types;
  }

  const std::string tiny_ = TestModel("llama_h64-F32.gguf");
};

TEST_F(AbiQuantizeTest, EveryConstantOpensAsPlannedWithTheFormatThatItNames) {
  const std::map<uint32_t, const char*> types = {
      {LLM_WEIGHTS_STORED, "F32"},         {LLM_WEIGHTS_INT8, "Q8_0"},
      {LLM_WEIGHTS_INT8_G32, "Q8_0"},      {LLM_WEIGHTS_INT8_G64, "Q8_0"},
      {LLM_WEIGHTS_INT8_G128, "Q8_0"},     {LLM_WEIGHTS_INT4_G32, "Q4_0"},
      {LLM_WEIGHTS_INT4_G64, "Q4_0"},      {LLM_WEIGHTS_INT4_G128, "Q4_0"},
      {LLM_WEIGHTS_INT4_ASYM_G32, "Q4_1"}, {LLM_WEIGHTS_INT4_ASYM_G64, "Q4_1"},
      {LLM_WEIGHTS_INT4_ASYM_G128, "Q4_1"}};
  const llm_model_source source = PathSource(tiny_);
  for (const auto& [weights, type] : types) {
    SCOPED_TRACE(weights);
    options_.linear_weights = weights;
    options_.embedding_weights = weights;
    llm_memory_plan plan;
    llm_memory_plan_init(&plan);
    ASSERT_EQ(llm_plan(&source, &options_, nullptr, &plan), LLM_OK) << llm_last_error();
    ASSERT_EQ(Open(tiny_), LLM_OK) << llm_last_error();
    llm_model_info info;
    llm_model_info_init(&info);
    ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
    EXPECT_EQ(info.weights_bytes, plan.weights_bytes);
    EXPECT_GT(info.repack_ns, 0u);
    EXPECT_GE(Types().at(type), 15);
    for (const float logprob : Score()) EXPECT_TRUE(std::isfinite(logprob));
  }
}

TEST_F(AbiQuantizeTest, TensorsAreListedAsTheyBecome) {
  options_.linear_weights = LLM_WEIGHTS_INT4_G32;
  options_.embedding_weights = LLM_WEIGHTS_INT8_G32;
  options_.header_only = LLM_ON;
  ASSERT_EQ(Open(tiny_), LLM_OK) << llm_last_error();
  const std::map<std::string, int> types = Types();
  EXPECT_EQ(types.at("Q4_0"), 14);
  EXPECT_EQ(types.at("Q8_0"), 1);
  EXPECT_EQ(types.at("F32"), 6);
}

TEST_F(AbiQuantizeTest, SavedFilesAnswerAsTheModelThatWasQuantisedWhenItOpened) {
  options_.linear_weights = LLM_WEIGHTS_INT4_G32;
  options_.head_weights = LLM_WEIGHTS_INT8_G32;
  options_.num_threads = 2;
  ASSERT_EQ(Open(tiny_), LLM_OK) << llm_last_error();
  const std::vector<float> expected = Score();
  const std::string gguf = folder_.File("tiny.gguf"), pack = folder_.File("tiny.llmpack");
  ASSERT_EQ(SaveGguf(gguf), LLM_OK) << llm_last_error();
  const llm_model_source source = PathSource(tiny_);
  ASSERT_EQ(llm_model_save(&source, &options_, pack.data(), pack.size()), LLM_OK)
      << llm_last_error();
  llm_model_options_init(&options_);
  for (const std::string& path : {gguf, pack}) {
    ASSERT_EQ(Open(path), LLM_OK) << llm_last_error();
    EXPECT_EQ(Score(), expected) << path;
    EXPECT_EQ(Types().at("Q4_0"), 14);
  }
  EXPECT_EQ(folder_.NumFiles(), 2u);
}

TEST_F(AbiQuantizeTest, AGgufFileIsWrittenWholeOrNotAtAll) {
  const std::string path = folder_.File("tiny.gguf");
  options_.linear_weights = LLM_WEIGHTS_INT4_G32;
  options_.progress = [](void*, uint64_t, uint64_t) -> int32_t { return 1; };
  EXPECT_EQ(SaveGguf(path), LLM_CANCELLED);
  EXPECT_EQ(Open(tiny_), LLM_CANCELLED);
  EXPECT_EQ(folder_.NumFiles(), 0u);
  options_.progress = nullptr;
  EXPECT_EQ(SaveGguf(folder_.File("no/such/folder.gguf")), LLM_NOT_FOUND);
}

TEST_F(AbiQuantizeTest, AnUnquantisedGgufFileIsACopyOfTheModel) {
  const std::string path = folder_.File("tiny.gguf");
  ASSERT_EQ(SaveGguf(path), LLM_OK) << llm_last_error();
  EXPECT_EQ(ReadWhole(path), ReadWhole(tiny_));
}

TEST_F(AbiQuantizeTest, AFileInPartsIsSavedAsOne) {
  const SplitFile split(tiny_, folder_.path());
  split.Write({});
  const std::string part = split.Path(1);
  for (const uint32_t weights : {uint32_t{LLM_WEIGHTS_STORED}, uint32_t{LLM_WEIGHTS_INT4_G32}}) {
    options_.linear_weights = weights;
    ASSERT_EQ(Open(tiny_), LLM_OK) << llm_last_error();
    const std::vector<float> expected = Score();
    ASSERT_EQ(Open(part), LLM_OK) << llm_last_error();
    EXPECT_EQ(Score(), expected);
    const std::string path = folder_.File("one.gguf");
    const llm_model_source source = PathSource(part);
    ASSERT_EQ(llm_model_save_gguf(&source, &options_, path.data(), path.size()), LLM_OK)
        << llm_last_error();
    options_.linear_weights = 0;
    ASSERT_EQ(Open(path), LLM_OK) << llm_last_error();
    EXPECT_EQ(Score(), expected);
  }
}

TEST_F(AbiQuantizeTest, WhatGgmlHasNoTypeForGoesIntoPacksOnly) {
  const std::string model = TestModel("gemma3_text-F32.gguf");
  const llm_model_source source = PathSource(model);
  options_.linear_weights = LLM_WEIGHTS_FP8_E4M3;
  ASSERT_EQ(Open(model), LLM_OK) << llm_last_error();
  EXPECT_GE(Types().at("F8_E4M3"), 14);
  const std::vector<float> expected = Score();
  const std::string gguf = folder_.File("tiny.gguf"), pack = folder_.File("tiny.llmpack");
  EXPECT_EQ(llm_model_save_gguf(&source, &options_, gguf.data(), gguf.size()), LLM_UNIMPLEMENTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("GGUF has no type for F8_E4M3"));
  ASSERT_EQ(llm_model_save(&source, &options_, pack.data(), pack.size()), LLM_OK);
  options_.linear_weights = 0;
  ASSERT_EQ(Open(pack), LLM_OK) << llm_last_error();
  EXPECT_EQ(Score(), expected);
}

TEST_F(AbiQuantizeTest, NamesATensorWhoseRowsAreNoWholeBlocks) {
  options_.linear_weights = LLM_WEIGHTS_FP8_E4M3;
  ExpectRefused(LLM_INVALID_ARGUMENT,
                "tensor blk.0.ffn_down.weight: 160 inputs are no whole blocks of 64");
}

TEST_F(AbiQuantizeTest, APackIsNeitherQuantisedNorMadeAGgufFile) {
  const std::string pack = folder_.Pack(tiny_, "");
  options_.linear_weights = LLM_WEIGHTS_INT4_G32;
  EXPECT_EQ(Open(pack), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("weights of a pack are laid out for good"));
  const llm_model_source source = PathSource(pack);
  const std::string path = folder_.File("tiny.gguf");
  EXPECT_EQ(llm_model_save_gguf(&source, nullptr, path.data(), path.size()),
            LLM_FAILED_PRECONDITION);
}

TEST_F(AbiQuantizeTest, RefusesWhatIsUnknownOrDoesNotGoTogether) {
  options_.linear_weights = 12345;
  ExpectRefused(LLM_INVALID_ARGUMENT, "linear_weights: 12345 is unknown");
  options_.expert_weights = 12345;
  ExpectRefused(LLM_INVALID_ARGUMENT, "expert_weights: 12345 is unknown");
  options_.embedding_weights = 12345;
  ExpectRefused(LLM_INVALID_ARGUMENT, "embedding_weights: 12345 is unknown");
  options_.head_weights = 12345;
  ExpectRefused(LLM_INVALID_ARGUMENT, "head_weights: 12345 is unknown");
  options_.requantize = LLM_ON;
  ExpectRefused(LLM_INVALID_ARGUMENT, "requantize: no weights are to be quantised");
  options_.prune = 3;
  ExpectRefused(LLM_INVALID_ARGUMENT, "prune: 3 is unknown");
  options_.prune = LLM_PRUNE_MAGNITUDE;
  ExpectRefused(LLM_INVALID_ARGUMENT, "prune_fraction: 0 is not above 0");
  options_.prune_fraction = 0.5f;
  ExpectRefused(LLM_INVALID_ARGUMENT, "prune_fraction: 0.5, but prune is not");
  options_.prune = LLM_PRUNE_2_OF_4;
  options_.linear_weights = LLM_WEIGHTS_INT4_ASYM_G32;
  ExpectRefused(LLM_INVALID_ARGUMENT, "do not keep zeros");
}

}  // namespace
}  // namespace llm
