// The C++ wrapper: ownership, statuses with messages, and a request from start to end.
#include <gmock/gmock.h>

#include <cstdio>
#include <inlay/llm.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using ::testing::HasSubstr;

static_assert(!std::is_copy_constructible_v<inlay::Model>);
static_assert(!std::is_copy_constructible_v<inlay::Engine>);
static_assert(std::is_nothrow_move_constructible_v<inlay::Engine>);

inlay::Status OpenTiny(inlay::Model* model) {
  const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
  return inlay::Model::Open(path, nullptr, model);
}

llm_engine_options ManualOptions() {
  llm_engine_options options;
  llm_engine_options_init(&options);
  options.drive = LLM_DRIVE_MANUAL;
  options.num_threads = 1;
  options.kv_tokens = 512;
  options.max_step_tokens = 64;
  return options;
}

TEST(LlmHppTest, SavesAPack) {
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  const std::string model = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
  source.path = inlay::String(model);
  const std::string path = testing::TempDir() + "llm_hpp_test.llmpack";
  ASSERT_TRUE(inlay::SaveModel(source, nullptr, path).ok());
  inlay::Model pack;
  EXPECT_TRUE(inlay::Model::Open(path, nullptr, &pack).ok());
  std::remove(path.c_str());
  EXPECT_THAT(inlay::SaveModel(source, nullptr, "/no/such/x").message(), HasSubstr("/no/such/x"));
}

TEST(LlmHppTest, ScoresAndEmbeds) {
  inlay::Model model;
  ASSERT_TRUE(OpenTiny(&model).ok());
  const llm_engine_options options = ManualOptions();
  inlay::Engine engine;
  ASSERT_TRUE(inlay::Engine::Open(model, &options, &engine).ok());
  const std::string text = "hello again";
  std::vector<int32_t> ids;
  ASSERT_TRUE(model.Tokenize(text, LLM_TEXT_ADD_SPECIAL, &ids).ok());
  llm_score_request score;
  llm_score_request_init(&score);
  score.text = inlay::String(text);
  std::vector<float> logprobs;
  ASSERT_TRUE(engine.Score(score, &logprobs).ok());
  EXPECT_EQ(logprobs.size(), ids.size() - 1);
  llm_embed_request embed;
  llm_embed_request_init(&embed);
  embed.ids = ids.data();
  embed.num_ids = ids.size();
  std::vector<float> values;
  ASSERT_TRUE(engine.Embed(embed, &values).ok());
  EXPECT_EQ(values.size(), 64u);
  embed.pooling = 9;
  const inlay::Status refused = engine.Embed(embed, &values);
  EXPECT_THAT(refused.message(), HasSubstr("pooling"));
  EXPECT_EQ(values.size(), 64u) << "untouched";
}

TEST(LlmHppTest, RunsARequestFromSubmitToFinished) {
  inlay::Model model;
  ASSERT_TRUE(OpenTiny(&model).ok());
  const llm_engine_options options = ManualOptions();
  inlay::Engine engine;
  ASSERT_TRUE(inlay::Engine::Open(model, &options, &engine).ok());
  const std::vector<int32_t> ids = {1, 2, 3};
  llm_request request = inlay::Request();
  request.prompt_ids = ids.data();
  request.num_prompt_ids = ids.size();
  request.max_new_tokens = 4;
  request.ignore_eos = LLM_ON;
  llm_request_id id = 0;
  ASSERT_TRUE(engine.Submit(request, &id).ok());
  for (bool worked = true; worked;) ASSERT_TRUE(engine.Step(&worked).ok());
  size_t tokens = 0;
  int finished = 0;
  const auto on_event = [&](const llm_event& event) {
    EXPECT_EQ(event.id, id);
    tokens += event.num_tokens;
    finished += event.type == LLM_EVENT_FINISHED ? 1 : 0;
  };
  size_t count = 0;
  ASSERT_TRUE(inlay::Poll(engine.queue(), 0, on_event, &count).ok());
  EXPECT_EQ(tokens, 4u);
  EXPECT_EQ(finished, 1);
  llm_metrics_snapshot metrics;
  ASSERT_TRUE(engine.GetMetrics(&metrics).ok());
  EXPECT_EQ(metrics.finished_requests_total, 1u);
  llm_histogram gaps;
  ASSERT_TRUE(engine.GetHistogram(LLM_HISTOGRAM_TOKEN_GAP, &gaps).ok());
  EXPECT_EQ(gaps.count, 3u);
  ASSERT_TRUE(engine.GetClassHistogram(0, LLM_HISTOGRAM_TOKEN_GAP, &gaps).ok());
  EXPECT_EQ(gaps.count, 3u);
  std::string text;
  ASSERT_TRUE(engine.GetMetricsText(&text).ok());
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total"));
  uint64_t cursor = 0;
  uint64_t steps = 0;
  ASSERT_TRUE(engine.ReadSteps(&cursor, [&](const llm_step_record&) { ++steps; }).ok());
  EXPECT_EQ(steps, metrics.steps_total);
  cursor = 0;
  uint64_t ends = 0;
  const auto count_ends = [&](const llm_request_record& record) {
    ends += record.kind == LLM_RECORD_FINISHED ? 1 : 0;
  };
  ASSERT_TRUE(engine.ReadRecords(&cursor, count_ends).ok());
  EXPECT_EQ(ends, 1u);
  EXPECT_EQ(engine.StartTrace("/no/such/folder/t").code(), LLM_NOT_FOUND);
  EXPECT_EQ(engine.StopTrace().code(), LLM_FAILED_PRECONDITION);
  EXPECT_EQ(engine.Cancel(id).code(), LLM_NOT_FOUND);
}

TEST(LlmHppTest, AStatusKeepsItsMessageWhenALaterCallFails) {
  inlay::Model model;
  const inlay::Status first = inlay::Model::Open("/no/such/file", nullptr, &model);
  const inlay::Status second = inlay::Model::Open("/another", nullptr, &model);
  EXPECT_EQ(first.code(), LLM_NOT_FOUND);
  EXPECT_STREQ(first.name(), "NOT_FOUND");
  EXPECT_THAT(first.message(), HasSubstr("/no/such/file"));
  EXPECT_THAT(second.message(), HasSubstr("/another"));
  EXPECT_FALSE(model);
}

TEST(LlmHppTest, MovingHandsTheHandleOver) {
  inlay::Model model;
  ASSERT_TRUE(OpenTiny(&model).ok());
  llm_model* const handle = model.get();
  inlay::Model moved = std::move(model);
  EXPECT_EQ(moved.get(), handle);
  inlay::Queue queue;
  ASSERT_TRUE(inlay::Queue::Create(&queue).ok());
  ASSERT_TRUE(inlay::Queue::Create(&queue).ok()) << "the first one is closed";
  EXPECT_TRUE(queue);
}

TEST(LlmHppTest, TextGoesToIdsAndBack) {
  inlay::Model model;
  ASSERT_TRUE(OpenTiny(&model).ok());
  std::vector<int32_t> ids;
  ASSERT_TRUE(model.Tokenize("hello world", 0, &ids).ok());
  EXPECT_FALSE(ids.empty());
  std::string text(100, 'x');
  ASSERT_TRUE(model.Detokenize(ids, 0, &text).ok());
  EXPECT_EQ(text, "hello world");
  llm_model_info info;
  ASSERT_TRUE(model.GetInfo(&info).ok());
  EXPECT_EQ(inlay::View(info.architecture), "llama");
  llm_tensor_info tensor;
  ASSERT_TRUE(model.GetTensor(0, &tensor).ok());
  EXPECT_EQ(inlay::View(tensor.name), "token_embd.weight");
  std::string_view key, value;
  ASSERT_TRUE(model.GetMetadata(0, &key, &value).ok());
  EXPECT_EQ(key, "general.architecture");
  EXPECT_EQ(model.GetMetadata(info.num_metadata, &key, &value).code(), LLM_OUT_OF_RANGE);
}

}  // namespace
