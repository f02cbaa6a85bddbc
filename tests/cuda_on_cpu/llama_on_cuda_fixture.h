// Engines of one tiny Llama on the emulated GPU, whose prompts and greedy tokens another
// implementation gave.
#pragma once

#include <vector>

#include "tests/cuda_on_cpu/engine_on_cuda_fixture.h"

namespace llm {

class LlamaOnCudaTest : public EngineOnCudaTest {
 protected:
  static constexpr const char* kModel = "llama_h64-F32";

  void SetUp() override { golden_ = Golden(kModel); }
  std::vector<int32_t> Ids(size_t prompt) const {
    return golden_["prompts"][prompt]["ids"].get<std::vector<int32_t>>();
  }
  // The first greedy tokens behind prompt 0.
  std::vector<int32_t> Expected(size_t count) const {
    auto tokens = golden_["prompts"][0]["greedy"].get<std::vector<int32_t>>();
    tokens.resize(count);
    return tokens;
  }
  // Its tokens are drawn, so that they show any bit of the logits sooner or later.
  llm_request_id SubmitDrawn(const std::vector<int32_t>& ids, uint32_t max_new_tokens,
                             float presence_penalty = 0) {
    llm_request request = RequestOf(ids, max_new_tokens, 1.5f);
    request.presence_penalty = presence_penalty;
    request.seed = max_new_tokens;
    request.set |= LLM_SET_SEED;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    return id;
  }
  void Steps(int count) {
    uint32_t worked = 0;
    for (int i = 0; i < count; ++i) EXPECT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  }
  llm_metrics_snapshot Metrics() {
    llm_metrics_snapshot metrics;
    llm_metrics_snapshot_init(&metrics);
    EXPECT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
    return metrics;
  }
  // The one request, whose device is lost from the call with this number on, ends once and says
  // why, with the tokens that it had; both are closed.
  void ExpectEndsAsLostAt(int64_t call) {
    gpu().BreakCall(call);
    RunAll();
    Poll();
    ASSERT_EQ(answers_.size(), 1u);
    const Answer& answer = answers_.begin()->second;
    EXPECT_EQ(answer.num_finished, 1);
    EXPECT_EQ(answer.status, LLM_INTERNAL);
    EXPECT_NE(answer.message.find("the device is lost"), std::string::npos) << answer.message;
    EXPECT_EQ(answer.ids, Expected(answer.ids.size()));
    answers_.clear();
    CloseEngine();
    CloseModel();
    gpu().Reset();
  }
  // Runs all to their ends and closes both; the tokens of these requests, in their order.
  std::vector<std::vector<int32_t>> Finish(const std::vector<llm_request_id>& ids) {
    RunAll();
    Poll();
    std::vector<std::vector<int32_t>> tokens;
    for (const llm_request_id id : ids) {
      EXPECT_EQ(answers_[id].status, LLM_OK) << answers_[id].message;
      tokens.push_back(answers_[id].ids);
    }
    metrics_ = Metrics();
    answers_.clear();
    CloseEngine();
    CloseModel();
    return tokens;
  }

  nlohmann::json golden_;
  llm_metrics_snapshot metrics_ = {};  // as of the last Finish
};

}  // namespace llm
