// llm_metrics, llm_metrics_histogram and llm_metrics_text through the C ABI.
#include <gmock/gmock.h>

#include <string>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiMetricsTest : public AbiTest {
 protected:
  void SetUp() override {
    AbiTest::SetUp();
    Open(LLM_DRIVE_MANUAL);
    const llm_request request = Request(ids_);
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
  }
};

TEST_F(AbiMetricsTest, PartsSumToTheirTotals) {
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_GT(metrics.busy_ns_total, 0u);
  EXPECT_EQ(metrics.admit_ns_total + metrics.schedule_ns_total + metrics.forward_ns_total +
                metrics.sample_ns_total + metrics.commit_ns_total + metrics.deliver_ns_total,
            metrics.busy_ns_total);
  EXPECT_EQ(metrics.prompt_tokens_total, 5u);
  EXPECT_EQ(metrics.length_requests_total, 1u);
  EXPECT_EQ(metrics.stopped_requests_total, 0u);
}

TEST_F(AbiMetricsTest, HistogramsCountWhatTheyAreNamedAfter) {
  const auto read = [&](uint32_t which) {
    llm_histogram histogram;
    llm_histogram_init(&histogram);
    EXPECT_EQ(llm_metrics_histogram(engine_, which, &histogram), LLM_OK) << llm_last_error();
    uint64_t count = 0;
    for (uint32_t i = 0; i < histogram.num_buckets; ++i) count += histogram.buckets[i];
    EXPECT_EQ(histogram.count, count);
    for (uint32_t i = 2; i < histogram.num_buckets; ++i) {
      EXPECT_LT(histogram.edges[i - 2], histogram.edges[i - 1]);
    }
    return histogram;
  };
  EXPECT_EQ(read(LLM_HISTOGRAM_STEP_TOKENS).sum, 5u + 3);
  EXPECT_EQ(read(LLM_HISTOGRAM_STEP_SEQUENCES).count, 4u);
  EXPECT_EQ(read(LLM_HISTOGRAM_QUEUE_TIME).count, 1u);
  EXPECT_EQ(read(LLM_HISTOGRAM_TTFT).count, 1u);
  EXPECT_EQ(read(LLM_HISTOGRAM_TOKEN_GAP).count, 3u);
  EXPECT_EQ(read(LLM_HISTOGRAM_COMPLETION_TIME).count, 1u);
  EXPECT_EQ(read(LLM_HISTOGRAM_PREFILL_TIME).count, 1u);
  EXPECT_EQ(read(LLM_HISTOGRAM_DECODE_TIME).count, 1u);
  EXPECT_EQ(read(LLM_HISTOGRAM_PROMPT_TOKENS).sum, 5u);
  EXPECT_EQ(read(LLM_HISTOGRAM_GENERATED_TOKENS).sum, 4u);
  llm_histogram histogram;
  llm_histogram_init(&histogram);
  EXPECT_EQ(read(LLM_HISTOGRAM_RETAINED_TOKENS).count, 1u);
  EXPECT_EQ(read(LLM_HISTOGRAM_VICTIM_TOKENS).count, 0u);
  EXPECT_EQ(llm_metrics_histogram(engine_, 12, &histogram), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("12"));
  EXPECT_EQ(llm_metrics_histogram(nullptr, 0, &histogram), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_metrics_histogram(engine_, 0, nullptr), LLM_INVALID_ARGUMENT);
}

TEST_F(AbiMetricsTest, SomeHistogramsAreKeptByClass) {
  llm_request request = Request(ids_);
  request.request_class = 3;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  const auto count = [&](uint32_t request_class, uint32_t which) {
    llm_histogram histogram;
    llm_histogram_init(&histogram);
    EXPECT_EQ(llm_metrics_class_histogram(engine_, request_class, which, &histogram), LLM_OK);
    EXPECT_GT(histogram.num_buckets, 1u);
    return histogram.count;
  };
  EXPECT_EQ(count(0, LLM_HISTOGRAM_TTFT), 1u);
  EXPECT_EQ(count(3, LLM_HISTOGRAM_TTFT), 1u);
  EXPECT_EQ(count(3, LLM_HISTOGRAM_TOKEN_GAP), 3u);
  EXPECT_EQ(count(3, LLM_HISTOGRAM_COMPLETION_TIME), 1u);
  EXPECT_EQ(count(4, LLM_HISTOGRAM_TTFT), 0u) << "a class that nobody named";
  llm_histogram histogram;
  llm_histogram_init(&histogram);
  for (const uint32_t which : {uint32_t{LLM_HISTOGRAM_QUEUE_TIME}, 12u, ~0u}) {
    EXPECT_EQ(llm_metrics_class_histogram(engine_, 0, which, &histogram), LLM_INVALID_ARGUMENT);
  }
  EXPECT_EQ(llm_metrics_class_histogram(nullptr, 0, LLM_HISTOGRAM_TTFT, &histogram),
            LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_metrics_class_histogram(engine_, 0, LLM_HISTOGRAM_TTFT, nullptr),
            LLM_INVALID_ARGUMENT);
}

TEST_F(AbiMetricsTest, OpeningIsTimedByStage) {
  llm_model_info info;
  llm_model_info_init(&info);
  ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
  EXPECT_GT(info.header_ns, 0u);
  EXPECT_GT(info.tokenizer_ns, 0u);
  EXPECT_GT(info.read_ns, 0u);
  EXPECT_GT(info.repack_ns, 0u);
  EXPECT_GE(info.open_ns, info.header_ns + info.tokenizer_ns);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_GT(metrics.engine_open_ns, 0u);
  EXPECT_EQ(metrics.calibrate_ns, 0u);
}

TEST_F(AbiMetricsTest, BytesMovedArePredictedFromTheModelsSizes) {
  llm_model_info info;
  llm_model_info_init(&info);
  ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_GT(metrics.weight_bytes_read_total, 0u);
  EXPECT_LE(metrics.weight_bytes_read_total, 5 * info.weights_bytes) << "4 steps, and embeddings";
  EXPECT_GT(metrics.kv_bytes_read_total, metrics.kv_bytes_written_total);
  EXPECT_EQ(metrics.kv_bytes_written_total * 512, 8 * metrics.kv_bytes_current)
      << "8 of the 512 tokens that the cache holds";
  EXPECT_EQ(metrics.kv_bytes_read_total * 8, 26 * metrics.kv_bytes_written_total)
      << "5 + 6 + 7 + 8 keys seen";
  EXPECT_EQ(metrics.memory_bandwidth_current, 0u) << "a model that fits into caches";
}

TEST_F(AbiMetricsTest, ARefusedStructCountsAsARejectedRequest) {
  llm_request request = Request(ids_);
  request.choices = 0xffffffffu;
  llm_request_id id = 0;
  EXPECT_NE(llm_submit(engine_, &request, &id), LLM_OK);
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  ASSERT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
  EXPECT_EQ(metrics.rejected_requests_total, 1u);
}

TEST_F(AbiMetricsTest, RefusedStructsOfTheWaitingCallsCountToo) {
  llm_metrics_snapshot before;
  llm_metrics_snapshot_init(&before);
  ASSERT_EQ(llm_metrics(engine_, &before), LLM_OK);
  llm_score_request score;
  llm_score_request_init(&score);
  llm_embed_request embed;
  llm_embed_request_init(&embed);
  llm_prefix prefix;
  llm_prefix_init(&prefix);
  score.parse_special = embed.parse_special = prefix.parse_special = 7;
  score.ids = embed.ids = prefix.prompt_ids = ids_.data();
  score.num_ids = embed.num_ids = prefix.num_prompt_ids = ids_.size();
  size_t count = 0;
  llm_pin_id pin = 0;
  EXPECT_EQ(llm_score(engine_, &score, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_embed(engine_, &embed, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_INVALID_ARGUMENT);
  llm_metrics_snapshot after;
  llm_metrics_snapshot_init(&after);
  ASSERT_EQ(llm_metrics(engine_, &after), LLM_OK);
  EXPECT_EQ(after.rejected_invalid_requests_total, before.rejected_invalid_requests_total + 3);
}

TEST_F(AbiMetricsTest, TextIsSizedAndCutToTheBuffer) {
  size_t size = 0;
  ASSERT_EQ(llm_metrics_text(engine_, nullptr, 0, &size), LLM_OK) << llm_last_error();
  std::string text(size, 'x');
  size_t again = 0;
  ASSERT_EQ(llm_metrics_text(engine_, text.data(), text.size(), &again), LLM_OK);
  EXPECT_EQ(again, size);
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total{model_name="));
  EXPECT_EQ(text.back(), '\n');
  char small[8] = "1234567";
  ASSERT_EQ(llm_metrics_text(engine_, small, 3, &again), LLM_OK);
  EXPECT_EQ(std::string(small), text.substr(0, 3) + "4567");
  EXPECT_EQ(llm_metrics_text(engine_, nullptr, 3, &again), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_metrics_text(nullptr, small, 3, &again), LLM_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace llm
