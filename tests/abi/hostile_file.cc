// Everything that a host does with a model, in one function that must come back whatever the file.
#include "tests/abi/hostile_file.h"

#include <algorithm>

namespace llm {
namespace {

void AskForTexts(const llm_model* model) {
  const char* text = "the \xff caf\xc3\xa9 <|eos|>";
  std::vector<int32_t> ids(64);
  size_t count = 0;
  if (llm_tokenize(model, text, std::strlen(text), LLM_TEXT_ADD_SPECIAL | LLM_TEXT_PARSE_SPECIAL,
                   ids.data(), ids.size(), &count) == LLM_OK) {
    size_t size = 0;
    EXPECT_EQ(llm_detokenize(model, ids.data(), std::min(count, ids.size()),
                             LLM_TEXT_RENDER_SPECIAL, nullptr, 0, &size),
              LLM_OK);
  }
  const char* chat = R"([{"role": "user", "content": "hi"}])";
  size_t size = 0;
  llm_chat_render(model, chat, std::strlen(chat), nullptr, 0, &size);
}

void Generate(llm_engine* engine, HostileRun* run) {
  llm_request request;
  llm_request_init(&request);
  const int32_t ids[] = {0, 1, 2};
  request.prompt_ids = ids;
  request.num_prompt_ids = 3;
  request.max_new_tokens = 3;
  request.ignore_eos = LLM_ON;
  request.render_special = LLM_ON;
  request.num_logprobs = 2;
  llm_request_id id = 0;
  run->submit = llm_submit(engine, &request, &id);
  if (run->submit != LLM_OK) run->message = llm_last_error();
  uint32_t worked = 1;
  for (int step = 0; worked != 0 && step < 100; ++step) {
    if (llm_engine_step(engine, &worked) != LLM_OK) break;
  }
  llm_event events[16];
  size_t count = 0;
  EXPECT_EQ(llm_poll(llm_engine_queue(engine), events, sizeof(events[0]), 16, 0, &count), LLM_OK);
  for (size_t i = 0; i < count; ++i) {
    if (events[i].type != LLM_EVENT_FINISHED) continue;
    ++run->num_finished;
    run->finish = events[i].status;
    run->message = std::string(events[i].message.data, events[i].message.size);
  }
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  EXPECT_EQ(llm_metrics(engine, &metrics), LLM_OK);
  run->healthy = metrics.healthy == 1;
}

}  // namespace

HostileRun HostileFile::Run(const char* kernels) const {
  HostileRun run;
  llm_model_options options;
  llm_model_options_init(&options);
  options.num_threads = 1;
  options.kernels = Str(kernels);
  llm_model* model = nullptr;
  run.open = llm_model_open(path_.data(), path_.size(), &options, &model);
  if (run.open != LLM_OK) {
    run.message = llm_last_error();
    return run;
  }
  AskForTexts(model);
  llm_engine_options engine_options;
  llm_engine_options_init(&engine_options);
  engine_options.drive = LLM_DRIVE_MANUAL;
  engine_options.num_threads = 1;
  engine_options.kv_tokens = 64;
  engine_options.max_sequences = 2;
  engine_options.max_step_tokens = 16;
  llm_engine* engine = nullptr;
  run.engine = llm_engine_open(model, &engine_options, &engine);
  if (run.engine == LLM_OK) {
    Generate(engine, &run);
  } else {
    run.message = llm_last_error();
  }
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  llm_model_release(model);
  return run;
}

}  // namespace llm
