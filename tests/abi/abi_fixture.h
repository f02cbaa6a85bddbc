// A tiny model opened through the C ABI, and an engine on it that the test drives.
#pragma once

#include <gtest/gtest.h>
#include <inlay/llm.h>

#include <cstring>
#include <string>
#include <vector>

namespace llm {

inline llm_string Str(const char* text) { return {text, std::strlen(text)}; }

class AbiTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
    llm_model_options options;
    llm_model_options_init(&options);
    options.kernels = Str("reference");
    ASSERT_EQ(llm_model_open(path.data(), path.size(), &options, &model_), LLM_OK)
        << llm_last_error();
  }
  void TearDown() override {
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK) << llm_last_error();
    llm_model_release(model_);
  }

  static llm_engine_options EngineOptions(uint32_t drive) {
    llm_engine_options options;
    llm_engine_options_init(&options);
    options.drive = drive;
    options.num_threads = 1;
    options.kv_tokens = 512;
    options.max_step_tokens = 64;
    return options;
  }
  void Open(uint32_t drive) {
    const llm_engine_options options = EngineOptions(drive);
    ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  }
  static llm_request Request(const std::vector<int32_t>& ids) {
    llm_request request;
    llm_request_init(&request);
    request.prompt_ids = ids.data();
    request.num_prompt_ids = ids.size();
    request.max_new_tokens = 4;
    request.ignore_eos = LLM_ON;
    return request;
  }
  // Steps a manual engine until it is idle.
  void RunAll() {
    uint32_t worked = 1;
    while (worked != 0) ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK) << llm_last_error();
  }
  std::vector<llm_event> Poll() {
    std::vector<llm_event> events(16);
    size_t count = 0;
    EXPECT_EQ(llm_poll(llm_engine_queue(engine_), events.data(), sizeof(llm_event), events.size(),
                       0, &count),
              LLM_OK)
        << llm_last_error();
    events.resize(count);
    return events;
  }

  llm_model* model_ = nullptr;
  llm_engine* engine_ = nullptr;
  const std::vector<int32_t> ids_ = {1, 2, 3, 4, 5};
};

}  // namespace llm
