// Which of several GPUs a model goes to, and that the host's choice of a current one stays its own.
#include <utility>

#include "gmock/gmock.h"
#include "tests/cuda_on_cpu/engine_on_cuda_fixture.h"

namespace llm {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = "llama_h64-Q4_1";

class EngineDevicesTest : public EngineOnCudaTest {
 protected:
  EngineDevicesTest() { gpu().set_num_devices(2); }
  void TearDown() override {
    EngineOnCudaTest::TearDown();
    Switch();
    EngineOnCudaTest::TearDown();
  }

  // To the other of two models.
  void Switch() {
    std::swap(model_, other_model_);
    std::swap(engine_, other_engine_);
    std::swap(answers_, other_answers_);
  }
  static llm_model_options OptionsOf(uint32_t device_index, uint32_t device = LLM_DEVICE_CUDA) {
    llm_model_options options = ModelOptions(device);
    options.device_index = device_index;
    return options;
  }
  void OpenOn(uint32_t device_index) {
    ASSERT_EQ(TryOpen(PathOf(kModel), OptionsOf(device_index)), LLM_OK) << llm_last_error();
    ASSERT_EQ(TryOpenEngine(EngineOptions()), LLM_OK) << llm_last_error();
  }

  llm_model* other_model_ = nullptr;
  llm_engine* other_engine_ = nullptr;
  std::map<llm_request_id, Answer> other_answers_;
};

// No peer access is given: whatever touches the other device's memory is a fault.
TEST_F(EngineDevicesTest, TwoModelsOnTwoDevicesGiveTheSameAnswersAndLeaveTheCurrentDeviceAlone) {
  for (int current = 0; current < 2; ++current) {
    ASSERT_EQ(cudaSetDevice(current), cudaSuccess);
    answers_.clear();
    other_answers_.clear();
    OpenOn(0);
    Switch();
    OpenOn(1);
    EXPECT_GT(memory().allocated_bytes(0), 0u);
    EXPECT_EQ(memory().allocated_bytes(0), memory().allocated_bytes(1));
    const nlohmann::json prompt = Golden(kModel)["prompts"][0];
    const auto ids = prompt["ids"].get<std::vector<int32_t>>();
    const llm_request_id on_second = Submit(ids, 4);
    Switch();
    const llm_request_id on_first = Submit(ids, 4);
    uint32_t worked = 1, other_worked = 1;
    while (worked != 0 || other_worked != 0) {
      ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK) << llm_last_error();
      ASSERT_EQ(llm_engine_step(other_engine_, &other_worked), LLM_OK) << llm_last_error();
    }
    Poll();
    Switch();
    Poll();
    auto golden = prompt["greedy"].get<std::vector<int32_t>>();
    golden.resize(4);
    EXPECT_EQ(answers_[on_second].ids, golden) << answers_[on_second].message;
    EXPECT_EQ(other_answers_[on_first].ids, golden) << other_answers_[on_first].message;
    for (int i = 0; i < 2; ++i) {
      CloseEngine();
      CloseModel();
      Switch();
    }
    EXPECT_EQ(memory().allocated_bytes(), 0u);
    int after = -1;
    ASSERT_EQ(cudaGetDevice(&after), cudaSuccess);
    EXPECT_EQ(after, current);
  }
}

TEST_F(EngineDevicesTest, TheFirstIsTheDefault) {
  ASSERT_EQ(TryOpen(PathOf(kModel), ModelOptions(LLM_DEVICE_DEFAULT)), LLM_OK) << llm_last_error();
  EXPECT_GT(memory().allocated_bytes(0), 0u);
  EXPECT_EQ(memory().allocated_bytes(1), 0u);
}

TEST_F(EngineDevicesTest, TheSecondIsTakenByDefaultTooWhereItIsNamed) {
  ASSERT_EQ(TryOpen(PathOf(kModel), OptionsOf(1, LLM_DEVICE_DEFAULT)), LLM_OK) << llm_last_error();
  EXPECT_EQ(memory().allocated_bytes(0), 0u);
  EXPECT_GT(memory().allocated_bytes(1), 0u);
}

TEST_F(EngineDevicesTest, AnIndexWithoutAGpuIsRefusedByName) {
  for (const uint32_t device : {LLM_DEVICE_CUDA, LLM_DEVICE_DEFAULT}) {
    EXPECT_EQ(TryOpen(PathOf(kModel), OptionsOf(2, device)), LLM_INVALID_ARGUMENT);
    EXPECT_THAT(llm_last_error(), HasSubstr("device_index 2: GPUs that can be used: 2"));
  }
  EXPECT_EQ(TryOpen(PathOf(kModel), OptionsOf(1, LLM_DEVICE_CPU)), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("device_index: 1 names a GPU, and device is none"));
}

// The plan looks at the device that the model would go to.
TEST_F(EngineDevicesTest, APlanIsOfTheDeviceThatIsNamed) {
  const std::string path = PathOf(kModel);
  llm_memory_plan plan;
  llm_model_options options = OptionsOf(1);
  ASSERT_EQ(TryPlan(path, options, EngineOptions(), &plan), LLM_OK) << llm_last_error();
  // Room for one engine, which device 1 has.
  OpenOn(1);
  memory().set_limit_bytes(plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
  EXPECT_EQ(TryPlan(path, options, EngineOptions(), &plan), LLM_RESOURCE_EXHAUSTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("bytes are free"));
  options.device_index = 0;
  EXPECT_EQ(TryPlan(path, options, EngineOptions(), &plan), LLM_OK) << llm_last_error();
}

// By default keys and values take what the weights and the workspace leave.
TEST_F(EngineDevicesTest, TheDefaultKvTakesWhatIsLeftAsThePlanSays) {
  const size_t limit = size_t{300} << 20;
  const size_t reserve = size_t{256} << 20;
  memory().set_limit_bytes(limit);
  const std::string path = PathOf(kModel);
  const llm_model_options model_options = ModelOptions();
  llm_engine_options engine_options = EngineOptions();
  engine_options.kv_tokens = 0;
  llm_memory_plan plan;
  ASSERT_EQ(TryPlan(path, model_options, engine_options, &plan), LLM_OK) << llm_last_error();
  ASSERT_EQ(TryOpen(path, model_options), LLM_OK) << llm_last_error();
  ASSERT_EQ(TryOpenEngine(engine_options), LLM_OK) << llm_last_error();
  const size_t taken = memory().allocated_bytes(0);
  const size_t planned = plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes;
  EXPECT_LE(taken, limit - reserve);
  EXPECT_LE(taken + memory().pinned_bytes(), planned);
  EXPECT_GT(planned - memory().pinned_bytes(), limit - reserve - (1 << 20));
}

}  // namespace
}  // namespace llm
