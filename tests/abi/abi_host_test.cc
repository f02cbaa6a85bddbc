// A host that lends its own memory, threads, clock and CPUs, well or badly.
#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;
using Task = void (*)(void*, uint32_t);

// Counts what it lent, and fails as told.
struct Memory {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> most{0};
  enum { kFine, kNull, kMisaligned, kThrow } what = kFine;
};

void* Allocate(void* user_data, size_t bytes, size_t alignment) {
  auto* memory = static_cast<Memory*>(user_data);
  if (memory->what == Memory::kNull) return nullptr;
  if (memory->what == Memory::kThrow) throw std::runtime_error("host");
  const size_t room = (bytes + 2 * alignment - 1) / alignment * alignment;
  auto* block = static_cast<char*>(std::aligned_alloc(alignment, room));
  memory->bytes += static_cast<int64_t>(bytes);
  memory->most = std::max(memory->most.load(), memory->bytes.load());
  return memory->what == Memory::kMisaligned ? block + 8 : block;
}

void Deallocate(void* user_data, void* block, size_t bytes) {
  auto* memory = static_cast<Memory*>(user_data);
  memory->bytes -= static_cast<int64_t>(bytes);
  std::free(memory->what == Memory::kMisaligned ? static_cast<char*>(block) - 8 : block);
}

void InOrder(void* user_data, Task task, void* data, uint32_t count) {
  if (user_data != nullptr) ++*static_cast<std::atomic<int>*>(user_data);
  for (uint32_t i = 0; i < count; ++i) task(data, i);
}
void Reversed(void*, Task task, void* data, uint32_t count) {
  for (uint32_t i = count; i > 0; --i) task(data, i - 1);
}
void AllAtOnce(void*, Task task, void* data, uint32_t count) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) threads.emplace_back(task, data, i);
  for (std::thread& thread : threads) thread.join();
}
// Keeps its promise until `*user_data` is set.
void Careless(void* user_data, Task task, void* data, uint32_t count) {
  const bool breaks = *static_cast<bool*>(user_data);
  for (uint32_t i = 0; i + (breaks ? 1 : 0) < count; ++i) task(data, i);
}
void Throws(void* user_data, Task task, void* data, uint32_t count) {
  if (*static_cast<bool*>(user_data)) throw std::runtime_error("host");
  InOrder(nullptr, task, data, count);
}

// What a sound clock, then one that jumps back, then one that throws would show.
struct Time {
  std::atomic<int64_t> now_ns{0};
  std::atomic<bool> throws{false};
};
int64_t Now(void* user_data) {
  auto* time = static_cast<Time*>(user_data);
  if (time->throws) throw std::runtime_error("host");
  return time->now_ns;
}

class AbiHostTest : public AbiTest {
 protected:
  void SetUp() override {
    AbiTest::SetUp();
    llm_host_init(&host_);
  }
  llm_status TryOpen(uint32_t drive, uint32_t num_threads) {
    llm_engine_options options = EngineOptions(drive);
    options.num_threads = num_threads;
    options.host = &host_;
    return llm_engine_open(model_, &options, &engine_);
  }
  llm_status OpenModel(llm_model** model) {
    const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
    llm_model_options options;
    llm_model_options_init(&options);
    options.num_threads = 3;
    options.host = &host_;
    return llm_model_open(path.data(), path.size(), &options, model);
  }
  void UseMemory(Memory* memory) {
    host_.allocate = Allocate;
    host_.deallocate = Deallocate;
    host_.allocator_user_data = memory;
  }
  // Ids and log-probabilities of one answer, byte for byte.
  std::string Answer() {
    llm_request request = Request(ids_);
    request.max_new_tokens = 24;
    request.num_logprobs = 3;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    std::string answer;
    uint32_t worked = 1;
    while (worked != 0 && llm_engine_step(engine_, &worked) == LLM_OK) {
      for (const llm_event& event : Poll()) {
        answer.append(reinterpret_cast<const char*>(event.token_ids), event.num_tokens * 4);
        answer.append(reinterpret_cast<const char*>(event.logprobs),
                      event.num_tokens * event.logprobs_per_token * sizeof(llm_logprob));
      }
    }
    return answer;
  }
  void CloseEngine() {
    ASSERT_EQ(llm_engine_close(engine_), LLM_OK);
    engine_ = nullptr;
  }

  llm_host host_;
  Time time_;  // outlives the engine, which asks it until it is closed
};

TEST_F(AbiHostTest, TheHostsAllocatorGivesAllCountedMemoryAndGetsItBack) {
  Memory memory;
  UseMemory(&memory);
  llm_model* model = nullptr;
  ASSERT_EQ(OpenModel(&model), LLM_OK) << llm_last_error();
  llm_model_info info;
  llm_model_info_init(&info);
  ASSERT_EQ(llm_model_get_info(model, &info), LLM_OK);
  EXPECT_EQ(memory.bytes.load(), static_cast<int64_t>(info.weights_bytes));
  llm_model_release(model);
  EXPECT_EQ(memory.bytes.load(), 0);
  ASSERT_EQ(TryOpen(LLM_DRIVE_MANUAL, 2), LLM_OK) << llm_last_error();
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_EQ(static_cast<uint64_t>(memory.bytes.load()), metrics.memory_bytes_current);
  EXPECT_NE(Answer(), "");
  CloseEngine();
  EXPECT_EQ(memory.bytes.load(), 0);
}

TEST_F(AbiHostTest, WhatThePlanPredictsIsWhatTheHostIsAskedFor) {
  Memory memory;
  UseMemory(&memory);
  const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = Str(path.c_str());
  llm_model_options model_options;
  llm_model_options_init(&model_options);
  model_options.num_threads = 3;
  model_options.host = &host_;
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.host = &host_;
  options.num_threads = 2;
  llm_memory_plan plan;
  llm_memory_plan_init(&plan);
  ASSERT_EQ(llm_plan(&source, &model_options, &options, &plan), LLM_OK) << llm_last_error();
  EXPECT_EQ(memory.most.load(), 0) << "a plan takes nothing";
  llm_model* model = nullptr;
  ASSERT_EQ(OpenModel(&model), LLM_OK);
  EXPECT_EQ(static_cast<uint64_t>(memory.most.load()), plan.weights_bytes + plan.loading_bytes);
  llm_engine* engine = nullptr;
  ASSERT_EQ(llm_engine_open(model, &options, &engine), LLM_OK) << llm_last_error();
  llm_model_release(model);  // the engine keeps its weights
  EXPECT_EQ(static_cast<uint64_t>(memory.bytes.load()),
            plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  EXPECT_EQ(memory.bytes.load(), 0);
}

TEST_F(AbiHostTest, AnAllocatorThatRefusesMisalignsOrThrowsFailsTheOpenAlone) {
  for (const auto& [what, status] : {std::pair(Memory::kNull, LLM_RESOURCE_EXHAUSTED),
                                     std::pair(Memory::kThrow, LLM_RESOURCE_EXHAUSTED),
                                     std::pair(Memory::kMisaligned, LLM_INVALID_ARGUMENT)}) {
    Memory memory;
    memory.what = what;
    UseMemory(&memory);
    llm_model* model = nullptr;
    EXPECT_EQ(OpenModel(&model), status) << llm_last_error();
    EXPECT_EQ(TryOpen(LLM_DRIVE_THREADS, 2), status) << llm_last_error();
    EXPECT_EQ(memory.bytes.load(), 0);
  }
}

TEST_F(AbiHostTest, TheAnswerIsTheSameToTheBitOnAnyExecutor) {
  ASSERT_EQ(TryOpen(LLM_DRIVE_MANUAL, 3), LLM_OK) << llm_last_error();
  const std::string ours = Answer();
  EXPECT_NE(ours, "");
  CloseEngine();
  for (const auto run : {InOrder, Reversed, AllAtOnce}) {
    host_.run = run;
    ASSERT_EQ(TryOpen(LLM_DRIVE_MANUAL, 3), LLM_OK) << llm_last_error();
    EXPECT_EQ(Answer(), ours);
    CloseEngine();
  }
}

TEST_F(AbiHostTest, AnEngineWithThreadsRunsItsTasksOnTheHostsExecutor) {
  host_.run = AllAtOnce;
  ASSERT_EQ(TryOpen(LLM_DRIVE_THREADS, 3), LLM_OK) << llm_last_error();
  const llm_request request = Request(ids_);
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
  llm_event event = {};
  size_t count = 0;
  while (event.type != LLM_EVENT_FINISHED) {
    ASSERT_EQ(llm_poll(llm_engine_queue(engine_), &event, sizeof(event), 1, -1, &count), LLM_OK);
  }
  EXPECT_EQ(event.finish_reason, LLM_FINISH_LENGTH);
  EXPECT_EQ(event.stats->generated_tokens, 4);
}

TEST_F(AbiHostTest, AModelLoadsOnTheHostsExecutor) {
  std::atomic<int> runs{0};
  host_.run = InOrder;
  host_.executor_user_data = &runs;
  llm_model* model = nullptr;
  ASSERT_EQ(OpenModel(&model), LLM_OK) << llm_last_error();
  EXPECT_GT(runs.load(), 0);
  llm_model_release(model);
}

TEST_F(AbiHostTest, AnExecutorThatBreaksItsPromiseMakesTheEngineUnhealthy) {
  for (const auto run : {Careless, Throws}) {
    bool breaks = false;
    host_.run = run;
    host_.executor_user_data = &breaks;
    ASSERT_EQ(TryOpen(LLM_DRIVE_MANUAL, 3), LLM_OK) << llm_last_error();
    const llm_request request = Request(ids_);
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
    uint32_t worked = 0;
    ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
    Poll();
    breaks = true;
    ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
    const std::vector<llm_event> events = Poll();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].finish_reason, LLM_FINISH_ERROR);
    EXPECT_EQ(events[0].status, LLM_INTERNAL);
    EXPECT_THAT(std::string(events[0].message.data, events[0].message.size),
                HasSubstr("the host's executor"));
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_INTERNAL);
    EXPECT_THAT(llm_last_error(), HasSubstr("the host's executor"));
    CloseEngine();
  }
}

TEST_F(AbiHostTest, AModelOnACarelessExecutorDoesNotOpen) {
  bool breaks = true;
  host_.run = Careless;
  host_.executor_user_data = &breaks;
  llm_model* model = nullptr;
  EXPECT_EQ(OpenModel(&model), LLM_INTERNAL);
  EXPECT_THAT(llm_last_error(), HasSubstr("without running every task"));
}

TEST_F(AbiHostTest, DeadlinesAndStatisticsFollowTheHostsClock) {
  host_.now_ns = Now;
  host_.clock_user_data = &time_;
  ASSERT_EQ(TryOpen(LLM_DRIVE_MANUAL, 1), LLM_OK) << llm_last_error();
  llm_request request = Request(ids_);
  request.completion_deadline_ns = 1000;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
  time_.now_ns = 500;
  uint32_t worked = 0;
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  EXPECT_EQ(Poll().size(), 1u);
  time_.now_ns = -7;  // a step back: no time has passed
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  time_.now_ns = 2001;
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  const llm_event finished = Poll().back();
  EXPECT_EQ(finished.finish_reason, LLM_FINISH_DEADLINE);
  EXPECT_EQ(finished.stats->ttft_ns, 499) << "submitted at 0, which counts as 1";
  EXPECT_EQ(finished.stats->total_ns, 2000);
}

TEST_F(AbiHostTest, AClockThatLeapsWithManyRequestsOpenWrapsTheTotals) {
  host_.now_ns = Now;
  host_.clock_user_data = &time_;
  ASSERT_EQ(TryOpen(LLM_DRIVE_MANUAL, 1), LLM_OK) << llm_last_error();
  const llm_request request = Request(ids_);
  llm_request_id id = 0;
  for (int i = 0; i < 6; ++i) ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
  time_.now_ns = INT64_MAX;
  RunAll();
  EXPECT_EQ(Poll().back().finish_reason, LLM_FINISH_LENGTH);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_EQ(metrics.queue_ns_total, 6 * (uint64_t{INT64_MAX} / 4 - 1)) << "submitted at 1";
}

TEST_F(AbiHostTest, AClockThatThrowsMakesTheEngineUnhealthy) {
  host_.now_ns = Now;
  host_.clock_user_data = &time_;
  ASSERT_EQ(TryOpen(LLM_DRIVE_MANUAL, 1), LLM_OK) << llm_last_error();
  const llm_request request = Request(ids_);
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK);
  time_.throws = true;
  uint32_t worked = 0;
  ASSERT_EQ(llm_engine_step(engine_, &worked), LLM_OK);
  EXPECT_EQ(Poll().back().status, LLM_INTERNAL);
  EXPECT_EQ(llm_engine_step(engine_, &worked), LLM_INTERNAL);
  EXPECT_THAT(llm_last_error(), HasSubstr("the host's clock"));
}

TEST_F(AbiHostTest, ACpuThatThereIsNotIsNamed) {
  const int32_t cpus[] = {CPU_SETSIZE + 4};
  host_.cpu_ids = cpus;
  host_.num_cpu_ids = 1;
  llm_model* model = nullptr;
  EXPECT_EQ(OpenModel(&model), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(TryOpen(LLM_DRIVE_THREADS, 2), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr(std::to_string(cpus[0])));
}

TEST_F(AbiHostTest, PinnedThreadsAnswerAndTheHostsStaysFree) {
  cpu_set_t before;
  cpu_set_t after;
  CPU_ZERO(&before);
  CPU_ZERO(&after);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int32_t cpu = 0;
  while (!CPU_ISSET(static_cast<size_t>(cpu), &before)) ++cpu;
  host_.cpu_ids = &cpu;
  host_.num_cpu_ids = 1;
  for (const uint32_t drive : {LLM_DRIVE_THREADS, LLM_DRIVE_MANUAL}) {
    ASSERT_EQ(TryOpen(drive, 3), LLM_OK) << llm_last_error();
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    if (drive == LLM_DRIVE_MANUAL) {
      EXPECT_NE(Answer(), "");
    }
    CloseEngine();
  }
}

TEST_F(AbiHostTest, HalfAnAllocatorAndANullListAreRefused) {
  host_.allocate = Allocate;
  EXPECT_EQ(TryOpen(LLM_DRIVE_MANUAL, 1), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("deallocate"));
  llm_host_init(&host_);
  host_.num_cpu_ids = 2;
  EXPECT_EQ(TryOpen(LLM_DRIVE_MANUAL, 1), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("cpu_ids"));
  llm_host_init(&host_);
  host_.reserved = 1;
  EXPECT_EQ(TryOpen(LLM_DRIVE_MANUAL, 1), LLM_UNIMPLEMENTED);
  host_.reserved = 0;
  host_.struct_size = 2;
  EXPECT_EQ(TryOpen(LLM_DRIVE_MANUAL, 1), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("llm_host"));
}

}  // namespace
}  // namespace llm
