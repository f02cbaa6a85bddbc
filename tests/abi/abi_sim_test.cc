// LLM_DEVICE_SIM: the engine loop on a virtual clock, where a step costs what it is told to.
#include <gmock/gmock.h>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using testing::HasSubstr;

class AbiSimTest : public AbiTest {
 protected:
  void SetUp() override {
    const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
    llm_model_options options;
    llm_model_options_init(&options);
    options.device = LLM_DEVICE_SIM;
    ASSERT_EQ(llm_model_open(path.data(), path.size(), &options, &model_), LLM_OK)
        << llm_last_error();
    llm_sim_costs_init(&costs_);
    costs_.fixed_ns = 1'000'000;
    costs_.decode_row_ns = 10'000;
    costs_.prefill_token_ns = 100'000;
  }

  llm_engine_options SimOptions() {
    llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
    options.sim_costs = &costs_;
    return options;
  }
  void OpenSim() {
    const llm_engine_options options = SimOptions();
    ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  }
  llm_request_id SubmitAt(int64_t arrival_ns, uint32_t max_new_tokens) {
    llm_request request = Request(ids_);
    request.max_new_tokens = max_new_tokens;
    request.arrival_ns = arrival_ns;
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    return id;
  }
  llm_metrics_snapshot Metrics() {
    llm_metrics_snapshot metrics;
    llm_metrics_snapshot_init(&metrics);
    EXPECT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
    return metrics;
  }

  llm_sim_costs costs_;
};

TEST_F(AbiSimTest, AStepTakesTheSumOfItsCosts) {
  OpenSim();
  SubmitAt(0, 4);
  RunAll();
  const std::vector<llm_event> events = Poll();
  ASSERT_EQ(events.back().type, static_cast<uint32_t>(LLM_EVENT_FINISHED));
  const llm_request_stats& stats = *events.back().stats;
  EXPECT_EQ(stats.generated_tokens, 4);
  EXPECT_EQ(stats.ttft_ns, 1'000'000 + 5 * 100'000);
  EXPECT_EQ(stats.total_ns, stats.ttft_ns + 3 * (1'000'000 + 10'000));
  EXPECT_EQ(events.back().finish_reason, LLM_FINISH_LENGTH);
}

TEST_F(AbiSimTest, TheClockJumpsToTheNextArrivalAndRunsStepsUntilThen) {
  OpenSim();
  const int64_t second = 1'000'000'000;
  SubmitAt(second, 1);
  EXPECT_EQ(Metrics().clock_ns_current, static_cast<uint64_t>(second));
  SubmitAt(second + 10'000'000, 1);  // the first one ends before
  EXPECT_EQ(Metrics().finished_requests_total, 1u);
  EXPECT_EQ(Metrics().clock_ns_current, static_cast<uint64_t>(second + 10'000'000));
  RunAll();
  for (const llm_event& event : Poll()) {
    if (event.type != LLM_EVENT_FINISHED) continue;
    EXPECT_EQ(event.stats->queue_ns, 0);
  }
}

TEST_F(AbiSimTest, ARequestThatArrivesDuringAStepWaitsForItsEnd) {
  OpenSim();
  SubmitAt(1, 8);
  SubmitAt(2'000'000, 1);  // the first step ends at 1,500,001, the second at 2,510,001
  RunAll();
  const llm_metrics_snapshot metrics = Metrics();
  EXPECT_EQ(metrics.queue_ns_total, 510'001u);
}

TEST_F(AbiSimTest, AnEndTokenComesBehindMinNewTokens) {
  OpenSim();
  llm_request request = Request(ids_);
  request.max_new_tokens = 100;
  request.min_new_tokens = 7;
  request.ignore_eos = LLM_OFF;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  const std::vector<llm_event> events = Poll();
  EXPECT_EQ(events.back().finish_reason, LLM_FINISH_END_TOKEN);
  EXPECT_EQ(events.back().stats->generated_tokens, 8);
}

TEST_F(AbiSimTest, AnEngineLargerThanThisMachineTakesNoMemory) {
  llm_engine_options options = SimOptions();
  options.kv_tokens = 1 << 24;
  options.max_sequences = 4096;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  const llm_metrics_snapshot metrics = Metrics();
  EXPECT_EQ(metrics.total_blocks_current, (1u << 24) / 16);
  EXPECT_GE(metrics.kv_bytes_current, uint64_t{1} << 32);
  EXPECT_EQ(metrics.memory_bytes_current, 0u);
}

TEST_F(AbiSimTest, WhatNeedsLogitsIsRefused) {
  OpenSim();
  llm_request request = Request(ids_);
  request.num_logprobs = 1;
  llm_request_id id = 0;
  EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_UNIMPLEMENTED);
  EXPECT_THAT(llm_last_error(), HasSubstr("num_logprobs"));
  llm_embed_request embed;
  llm_embed_request_init(&embed);
  embed.ids = ids_.data();
  embed.num_ids = ids_.size();
  size_t count = 0;
  EXPECT_EQ(llm_embed(engine_, &embed, nullptr, 0, &count), LLM_UNIMPLEMENTED);
}

TEST_F(AbiSimTest, OptionsThatDoNotFitASimulationAreNamed) {
  const auto refused = [&](auto change, const char* names) {
    llm_engine_options options = SimOptions();
    change(options);
    EXPECT_EQ(llm_engine_open(model_, &options, &engine_), LLM_INVALID_ARGUMENT) << names;
    EXPECT_THAT(llm_last_error(), HasSubstr(names));
  };
  refused([](llm_engine_options& o) { o.sim_costs = nullptr; }, "sim_costs");
  refused([](llm_engine_options& o) { o.drive = LLM_DRIVE_THREADS; }, "drive");
  costs_.fixed_ns = 2'000'000'000;
  refused([](llm_engine_options&) {}, "exceed a second");
}

TEST_F(AbiTest, SimulatedTimeIsRefusedByARealEngine) {
  llm_sim_costs costs;
  llm_sim_costs_init(&costs);
  llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
  options.sim_costs = &costs;
  EXPECT_EQ(llm_engine_open(model_, &options, &engine_), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("sim_costs"));
}

}  // namespace
}  // namespace llm
