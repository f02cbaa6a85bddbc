// A tiny model on the emulated GPU, opened and asked through the C ABI.
#pragma once

#include <inlay/llm.h>

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/golden/golden_util.h"

namespace llm {

// What was delivered of a request.
struct Answer {
  std::vector<int32_t> ids;
  int num_finished = 0;
  llm_status status = LLM_OK;
  std::string message;
};

class EngineOnCudaTest : public GpuTest {
 protected:
  void TearDown() override {
    CloseEngine();
    CloseModel();
    memory().set_limit_bytes(limit_bytes_);
  }

  static cuda_on_cpu::DeviceMemory& memory() { return cuda_on_cpu::DeviceMemory::Get(); }
  static std::string PathOf(const std::string& name) {
    return std::string(INLAY_TEST_DATA "/gguf/") + name + ".gguf";
  }
  static nlohmann::json Golden(const std::string& name) {
    return ReadJson(std::string(INLAY_TEST_DATA "/gguf/") + name + ".golden.json");
  }

  static llm_model_options ModelOptions(uint32_t device = LLM_DEVICE_CUDA) {
    llm_model_options options;
    llm_model_options_init(&options);
    options.device = device;
    options.num_threads = 2;
    options.float_activations = LLM_ON;
    return options;
  }
  static llm_engine_options EngineOptions(uint32_t drive = LLM_DRIVE_MANUAL) {
    llm_engine_options options;
    llm_engine_options_init(&options);
    options.drive = drive;
    options.kv_tokens = 512;
    options.max_context_tokens = 256;
    options.max_sequences = 4;
    options.max_step_tokens = 64;
    return options;
  }

  static llm_status TryPlan(const std::string& path, const llm_model_options& options,
                            const llm_engine_options& engine_options, llm_memory_plan* plan) {
    llm_model_source source;
    llm_model_source_init(&source);
    source.kind = LLM_SOURCE_PATH;
    source.path = {path.data(), path.size()};
    llm_memory_plan_init(plan);
    return llm_plan(&source, &options, &engine_options, plan);
  }
  llm_status TryOpen(const std::string& path, const llm_model_options& options) {
    return llm_model_open(path.data(), path.size(), &options, &model_);
  }
  llm_status TryOpenEngine(const llm_engine_options& options) {
    return llm_engine_open(model_, &options, &engine_);
  }
  void Open(const std::string& name, const llm_engine_options& options = EngineOptions()) {
    ASSERT_EQ(TryOpen(PathOf(name), ModelOptions()), LLM_OK) << llm_last_error();
    ASSERT_EQ(TryOpenEngine(options), LLM_OK) << llm_last_error();
  }
  void CloseEngine() {
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK) << llm_last_error();
    engine_ = nullptr;
  }
  void CloseModel() {
    llm_model_release(model_);
    model_ = nullptr;
  }

  // Of `ids`, which outlive it.
  static llm_request RequestOf(const std::vector<int32_t>& ids, uint32_t max_new_tokens,
                               float temperature) {
    llm_request request;
    llm_request_init(&request);
    request.prompt_ids = ids.data();
    request.num_prompt_ids = ids.size();
    request.max_new_tokens = max_new_tokens;
    request.ignore_eos = LLM_ON;
    request.temperature = temperature;
    return request;
  }
  llm_status TrySubmit(const std::vector<int32_t>& ids, uint32_t max_new_tokens, llm_request_id* id,
                       float temperature = 0) {
    const llm_request request = RequestOf(ids, max_new_tokens, temperature);
    return llm_submit(engine_, &request, id);
  }
  llm_request_id Submit(const std::vector<int32_t>& ids, uint32_t max_new_tokens,
                        float temperature = 0) {
    llm_request_id id = 0;
    EXPECT_EQ(TrySubmit(ids, max_new_tokens, &id, temperature), LLM_OK) << llm_last_error();
    return id;
  }
  void RunAll() {
    uint32_t worked = 1;
    while (worked != 0 && llm_engine_step(engine_, &worked) == LLM_OK) {
    }
  }
  // Takes what there is, waiting for the first event at most so long.
  void Poll(int64_t timeout_ns = 0) {
    std::vector<llm_event> events(64);
    size_t count = 0;
    do {
      ASSERT_EQ(llm_poll(llm_engine_queue(engine_), events.data(), sizeof(llm_event), events.size(),
                         timeout_ns, &count),
                LLM_OK)
          << llm_last_error();
      for (size_t i = 0; i < count; ++i) Add(events[i]);
      timeout_ns = 0;
    } while (count > 0);
  }
  void Add(const llm_event& event) {
    Answer& answer = answers_[event.id];
    answer.ids.insert(answer.ids.end(), event.token_ids, event.token_ids + event.num_tokens);
    if (event.type != LLM_EVENT_FINISHED) return;
    ++answer.num_finished;
    answer.status = event.status;
    answer.message.assign(event.message.data, event.message.size);
  }

  llm_model* model_ = nullptr;
  llm_engine* engine_ = nullptr;
  std::map<llm_request_id, Answer> answers_;
  const size_t limit_bytes_ = memory().limit_bytes();
};

}  // namespace llm
