// Requests that sample, through the C ABI: the device draws, and draws what the CPU backend does.
#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "tests/cuda_on_cpu/engine_on_cuda_fixture.h"

namespace llm {
namespace {

struct Choice {
  std::vector<int32_t> ids;
  std::vector<llm_logprob> logprobs;
};

// All calls of a run would take minutes; prime, so that a layer's launches take turns.
constexpr int64_t kFailedCallStride = 17;

class SamplingOnCudaTest : public EngineOnCudaTest {
 protected:
  using Choices = std::map<std::pair<size_t, uint32_t>, Choice>;  // by request and choice

  void SetUp() override { prompts_ = Golden("llama_h64-F32")["prompts"]; }
  std::vector<int32_t> IdsOf(size_t prompt) const {
    return prompts_[prompt % prompts_.size()]["ids"].get<std::vector<int32_t>>();
  }

  // Many wishes, one after the other and together.
  void Ask(size_t i, llm_request* request) const {
    static constexpr llm_logit_bias kBias[] = {{5, 4.0f}, {9, -100.0f}};
    request->temperature = i == 5 ? 0.0f : 0.7f + 0.2f * static_cast<float>(i);
    request->set = LLM_SET_SEED | LLM_SET_NUM_LOGPROBS;
    request->seed = 1000 + i;
    request->num_logprobs = i % 2 == 0 ? 0 : 3;
    if (i == 1) request->top_k = 20;
    if (i >= 2) request->top_p = 0.9f;
    if (i == 3) request->min_p = 0.02f;
    if (i >= 3) request->repetition_penalty = 1.2f;
    if (i >= 4) request->frequency_penalty = 0.5f;
    if (i == 0) request->choices = 3;
    if (i < 4) return;
    request->logit_bias = kBias;
    request->num_logit_bias = 2;
    request->logit_bias_size = sizeof(llm_logit_bias);
  }
  // All at once.
  Choices Generate(uint32_t device, size_t num_requests) {
    EXPECT_EQ(TryOpen(PathOf("llama_h64-F32"), ModelOptions(device)), LLM_OK) << llm_last_error();
    llm_engine_options options = EngineOptions();
    options.kv_dtype = LLM_KV_F32;  // else a last bit of a key can become one of an f16's
    EXPECT_EQ(TryOpenEngine(options), LLM_OK) << llm_last_error();
    std::map<llm_request_id, size_t> requests;
    for (size_t i = 0; i < num_requests; ++i) {
      const std::vector<int32_t> ids = IdsOf(i);
      llm_request request;
      llm_request_init(&request);
      request.prompt_ids = ids.data();
      request.num_prompt_ids = ids.size();
      request.max_new_tokens = num_tokens_;
      request.ignore_eos = LLM_ON;
      Ask(i, &request);
      llm_request_id id = 0;
      EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
      requests[id] = i;
    }
    calls_ = gpu().calls();
    const int64_t before = gpu().num_calls();
    if (failing_call_ >= 0) gpu().FailCall(failing_call_, cudaErrorUnknown);
    if (!failing_function_.empty()) gpu().FailNext(failing_function_, cudaErrorUnknown);
    RunAll();
    num_calls_ = gpu().num_calls() - before;
    for (const auto& [function, count] : gpu().calls()) {
      if (calls_[function] == count) calls_.erase(function);
    }
    Choices choices;
    std::vector<llm_event> events(64);
    size_t count = 1;
    while (count > 0) {
      EXPECT_EQ(llm_poll(llm_engine_queue(engine_), events.data(), sizeof(llm_event), events.size(),
                         0, &count),
                LLM_OK);
      for (size_t i = 0; i < count; ++i) {
        const llm_event& event = events[i];
        EXPECT_EQ(event.status, LLM_OK) << std::string(event.message.data, event.message.size);
        Choice& choice = choices[{requests[event.id], event.choice}];
        choice.ids.insert(choice.ids.end(), event.token_ids, event.token_ids + event.num_tokens);
        choice.logprobs.insert(choice.logprobs.end(), event.logprobs,
                               event.logprobs + event.num_tokens * event.logprobs_per_token);
      }
    }
    CloseEngine();
    CloseModel();
    return choices;
  }

  nlohmann::json prompts_;
  // Of those of the steps:
  int64_t failing_call_ = -1;
  std::string failing_function_;  // its first
  int64_t num_calls_ = 0;
  std::map<std::string, int64_t> calls_;  // the functions that were called
  uint32_t num_tokens_ = 6;
};

// The two have logits that differ by roundings, so that tokens could differ once in a million.
TEST_F(SamplingOnCudaTest, SeedsChoicesAndLogprobsAreThoseOfTheCpu) {
  const Choices expected = Generate(LLM_DEVICE_CPU, 6);
  const Choices choices = Generate(LLM_DEVICE_CUDA, 6);
  ASSERT_EQ(choices.size(), 8u);
  std::set<std::vector<int32_t>> answers;
  for (const auto& [key, choice] : choices) {
    SCOPED_TRACE(testing::Message() << "request " << key.first << ", choice " << key.second);
    const Choice& other = expected.at(key);
    EXPECT_EQ(choice.ids, other.ids);
    ASSERT_EQ(choice.logprobs.size(), other.logprobs.size());
    for (size_t i = 0; i < choice.logprobs.size(); ++i) {
      EXPECT_EQ(choice.logprobs[i].id, other.logprobs[i].id) << i;
      EXPECT_NEAR(choice.logprobs[i].logprob, other.logprobs[i].logprob, 1e-4) << i;
    }
    answers.insert(choice.ids);
  }
  EXPECT_EQ(answers.size(), 8u) << "each has a seed of its own";
}

// Of a prompt's step, plain ones and those of a graph: recorded, then launched.
TEST_F(SamplingOnCudaTest, OneCallThatFailsChangesNoAnswer) {
  num_tokens_ = 4;
  const Choices expected = Generate(LLM_DEVICE_CUDA, 2);
  const int64_t calls = num_calls_;
  ASSERT_GT(calls, 100);
  const auto expect_the_same = [&] {
    const Choices choices = Generate(LLM_DEVICE_CUDA, 2);
    for (const auto& [key, choice] : expected) {
      EXPECT_EQ(choices.at(key).ids, choice.ids)
          << gpu().failed_call() << " at call " << failing_call_;
    }
  };
  const std::map<std::string, int64_t> functions = calls_;
  ASSERT_GT(functions.size(), 8u);
  for (const auto& [function, count] : functions) {
    failing_function_ = function;
    expect_the_same();
    EXPECT_EQ(gpu().failed_call(), function);
  }
  failing_function_.clear();
  for (failing_call_ = 0; failing_call_ < calls; failing_call_ += kFailedCallStride) {
    expect_the_same();
    EXPECT_FALSE(gpu().failed_call().empty());
  }
}

// What may come back of a row: measures, the drawn id, those that were asked for.
TEST_F(SamplingOnCudaTest, RowsStayOnTheDevice) {
  Open("llama_h64-F32");
  const std::vector<int32_t> ids = IdsOf(0);
  const auto bytes_of = [&](const auto& ask) {
    llm_request request;
    llm_request_init(&request);
    request.prompt_ids = ids.data();
    request.num_prompt_ids = ids.size();
    request.max_new_tokens = 2;
    request.ignore_eos = LLM_ON;
    ask(&request);
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    const uint64_t before = gpu().bytes_to_host();
    RunAll();
    Poll();
    EXPECT_EQ(answers_[id].status, LLM_OK) << answers_[id].message;
    return gpu().bytes_to_host() - before;
  };
  const uint64_t row_bytes = 512 * sizeof(float);
  EXPECT_LT(bytes_of([](llm_request*) {}), row_bytes);
  EXPECT_LT(bytes_of([this](llm_request* request) { Ask(1, request); }), row_bytes);
  EXPECT_LT(bytes_of([this](llm_request* request) { Ask(4, request); }), row_bytes);
  const auto whole = [](llm_request* request) {
    request->set = LLM_SET_NUM_PROMPT_LOGPROBS;
    request->num_prompt_logprobs = 0;
  };
  EXPECT_GT(bytes_of(whole), ids.size() / 2 * row_bytes);
}

}  // namespace
}  // namespace llm
