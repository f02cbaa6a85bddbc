// The Prometheus text: a strict parser reads it, and it says what the counters say.
#include "src/engine/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"
#include "tests/engine/prometheus_parser.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

PrometheusFamilies Parsed(const EngineMetrics& metrics, const MetricsLabels& labels = {"tiny", 4}) {
  PrometheusFamilies families = ParsePrometheus(MetricsText(metrics, labels));
  EXPECT_EQ(families.error, "");
  return families;
}

TEST(MetricsTextTest, SaysWhatTheCountersSay) {
  EngineHarness harness;
  harness.runner().step_ns = 30'000'000;
  harness.Submit(harness.Spec("abcdefgh", 5));
  harness.RunAll();
  harness.Submit(harness.Spec("abcdefgh", 50));
  harness.Step();
  const EngineMetrics metrics = harness.engine().Metrics();
  const PrometheusFamilies families = Parsed(metrics);
  EXPECT_EQ(families.Value("vllm:num_requests_running"), 1);
  EXPECT_EQ(families.Value("vllm:num_requests_waiting"), 0);
  EXPECT_EQ(families.Value("vllm:generation_tokens_total"), 6);
  EXPECT_EQ(families.Value("vllm:prompt_tokens_total"), 16);
  EXPECT_EQ(families.Value("vllm:request_success_total", {{"finished_reason", "length"}}), 1);
  EXPECT_EQ(families.Value("vllm:prefix_cache_hits_total"),
            static_cast<double>(metrics.scheduler.cached_tokens_total));
  EXPECT_EQ(families.Value("vllm:time_to_first_token_seconds_bucket", {{"le", "0.02"}}), 0);
  EXPECT_EQ(families.Value("vllm:time_to_first_token_seconds_bucket", {{"le", "0.04"}}), 2);
  EXPECT_DOUBLE_EQ(families.Value("vllm:time_to_first_token_seconds_sum"), 0.06);
  EXPECT_EQ(families.Value("vllm:inter_token_latency_seconds_count"), 4);
  EXPECT_EQ(families.Value("vllm:iteration_tokens_total_count"), 6);
  EXPECT_DOUBLE_EQ(families.Value("inlay:busy_seconds_total"), 0.18);
  EXPECT_DOUBLE_EQ(families.Value("inlay:step_part_seconds_total", {{"part", "forward"}}), 0.18);
}

TEST(MetricsTextTest, TimesAreToldByClass) {
  EngineHarness harness;
  harness.runner().step_ns = 30'000'000;
  RequestSpec spec = harness.Spec("abcdefgh", 5);
  harness.Submit(spec);
  spec.request_class = 9;
  harness.Submit(spec);
  harness.RunAll();
  const PrometheusFamilies families = Parsed(harness.engine().Metrics());
  for (const char* request_class : {"0", "9"}) {
    const auto value = [&](const char* name) {
      return families.Value(name, {{"request_class", request_class}});
    };
    EXPECT_EQ(value("inlay:class_time_to_first_token_seconds_count"), 1);
    EXPECT_DOUBLE_EQ(value("inlay:class_time_to_first_token_seconds_sum"), 0.03);
    EXPECT_EQ(value("inlay:class_inter_token_latency_seconds_count"), 4);
    EXPECT_DOUBLE_EQ(value("inlay:class_e2e_request_latency_seconds_sum"), 0.15);
  }
  EXPECT_EQ(families.Value("inlay:class_inter_token_latency_seconds_bucket",
                           {{"request_class", "9"}, {"le", "0.05"}}),
            4);
}

TEST(MetricsTextTest, HasTheNamesAndLabelsThatRoutersRead) {
  EngineHarness harness;
  const PrometheusFamilies families = Parsed(harness.engine().Metrics());
  EXPECT_EQ(families.Value("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(
      families.Value("vllm:cache_config_info", {{"block_size", "4"}, {"num_gpu_blocks", "128"}}),
      1);
  EXPECT_EQ(families.Value("vllm:num_requests_waiting"), 0);
  EXPECT_EQ(families.Value("vllm:num_requests_running"), 0);
  const PrometheusSample& lora = families.by_name.at("vllm:lora_requests_info").samples.at(0);
  EXPECT_EQ(lora.labels.at("max_lora"), "0");
  EXPECT_EQ(lora.labels.at("running_lora_adapters"), "");
  EXPECT_EQ(lora.labels.at("waiting_lora_adapters"), "");
  for (const auto& [name, family] : families.by_name) {
    for (const PrometheusSample& sample : family.samples) {
      EXPECT_EQ(sample.labels.at("model_name"), "tiny") << name;
      EXPECT_EQ(sample.labels.at("engine"), "0") << name;
    }
  }
}

TEST(MetricsTextTest, TheShareOfBandwidthIsBytesOverForwardTime) {
  EngineMetrics metrics;
  metrics.step.weight_bytes_read_total = 3'000'000'000;
  metrics.step.kv_bytes_read_total = 900'000'000;
  metrics.step.kv_bytes_written_total = 100'000'000;
  metrics.step.part_ns_total[static_cast<size_t>(StepPart::kForward)] = 500'000'000;
  EXPECT_EQ(Parsed(metrics).Value("inlay:bandwidth_share"), 0) << "the bandwidth is not known";
  metrics.memory_bandwidth_current = 16'000'000'000;
  const PrometheusFamilies families = Parsed(metrics);
  EXPECT_DOUBLE_EQ(families.Value("inlay:bandwidth_share"), 0.5);
  EXPECT_EQ(families.Value("vllm:estimated_read_bytes_per_gpu_total"), 3.9e9);
  EXPECT_EQ(families.Value("vllm:estimated_write_bytes_per_gpu_total"), 1e8);
  EXPECT_EQ(families.Value("inlay:moved_bytes_total", {{"kind", "kv_read"}}), 9e8);
}

TEST(MetricsTextTest, AModelsNameIsEscaped) {
  MetricsLabels labels;
  labels.model_name = "a \"b\\c\"\nd{}, e=\"f";
  const PrometheusFamilies families = Parsed(EngineMetrics(), labels);
  EXPECT_EQ(families.by_name.at("inlay:steps_total").samples[0].labels.at("model_name"),
            labels.model_name);
}

TEST(MetricsTextTest, TimesKeepTheirNanoseconds) {
  EngineMetrics metrics;
  metrics.callback_ns_total = 12'000'000'345;
  EXPECT_THAT(MetricsText(metrics, {}), HasSubstr("engine=\"0\"} 12.000000345\n"));
}

TEST(PrometheusParserTest, RefusesWhatIsNotTheFormat) {
  const auto error = [](const std::string& text) { return ParsePrometheus(text).error; };
  const std::string head = "# HELP a_total x\n# TYPE a_total counter\n";
  EXPECT_EQ(error(head + "a_total{b=\"c\"} 1\n"), "");
  EXPECT_NE(error(head + "a_total{b=\"c\"} 1"), "");
  EXPECT_NE(error(head + "a_total{b=\"c\",} 1\n"), "");
  EXPECT_NE(error(head + "a_total{b=\"c\"d\"} 1\n"), "");
  EXPECT_NE(error(head + "a_total{b=\"c\"} 1,5\n"), "");
  EXPECT_NE(error(head + "a_total 1\na_total 1\n"), "");
  EXPECT_NE(error(head + "b_total 1\n"), "");
  EXPECT_NE(error(head + "a_total 1\n" + head + "a_total 1\n"), "");
  EXPECT_NE(error("# HELP a x\n# TYPE a counter\na 1\n"), "");
}

}  // namespace
}  // namespace llm
