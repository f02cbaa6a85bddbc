// What the design promises of the machine below: devices, and what a host lends.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiDesignHostTest : public AbiTest {};

TEST_F(AbiDesignHostTest, EveryDeviceOpensOrSaysWhyNot) {
  const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
  for (const uint32_t device :
       {LLM_DEVICE_DEFAULT, LLM_DEVICE_CPU, LLM_DEVICE_CUDA, LLM_DEVICE_SIM}) {
    llm_model_options options;
    llm_model_options_init(&options);
    options.device = device;
    llm_model* model = nullptr;
    const llm_status status = llm_model_open(path.data(), path.size(), &options, &model);
    if (status == LLM_OK) {
      llm_model_release(model);
    } else {
      EXPECT_GT(device, static_cast<uint32_t>(LLM_DEVICE_CPU));
      EXPECT_TRUE(status == LLM_UNIMPLEMENTED || status == LLM_UNAVAILABLE) << status;
      EXPECT_THAT(llm_last_error(), HasSubstr("device"));
    }
  }
}

// What a host lends, and how often it was asked.
struct Lent {
  std::atomic<int64_t> bytes{0};
  std::atomic<int> runs{0};
  std::atomic<int64_t> now_ns{1};
};

TEST_F(AbiDesignHostTest, TheHostMayLendItsAllocatorExecutorClockAndCpus) {
  Lent lent;
  llm_host host;
  llm_host_init(&host);
  host.allocator_user_data = host.executor_user_data = host.clock_user_data = &lent;
  host.allocate = [](void* user_data, size_t bytes, size_t alignment) -> void* {
    static_cast<Lent*>(user_data)->bytes += static_cast<int64_t>(bytes);
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  host.deallocate = [](void* user_data, void* memory, size_t bytes) {
    static_cast<Lent*>(user_data)->bytes -= static_cast<int64_t>(bytes);
    std::free(memory);
  };
  host.run = [](void* user_data, void (*task)(void*, uint32_t), void* data, uint32_t count) {
    ++static_cast<Lent*>(user_data)->runs;
    for (uint32_t i = count; i > 0; --i) task(data, i - 1);  // one by one: no inner barriers
  };
  host.now_ns = [](void* user_data) -> int64_t {
    return static_cast<Lent*>(user_data)->now_ns.fetch_add(1000);
  };
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.num_threads = 3;
  options.host = &host;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  EXPECT_GT(lent.bytes.load(), 0);
  const llm_request request = Request(ids_);
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  EXPECT_EQ(Poll().back().finish_reason, LLM_FINISH_LENGTH);
  EXPECT_GT(lent.runs.load(), 0);
  EXPECT_GT(lent.now_ns.load(), 1000);
  ASSERT_EQ(llm_engine_close(engine_), LLM_OK);
  engine_ = nullptr;
  EXPECT_EQ(lent.bytes.load(), 0);
}

}  // namespace
}  // namespace llm
