// The model is the smallest of tests/data; its answer costs well under a millisecond.
#include "tests/faults/tiny_host.h"

#include <iterator>

namespace llm {

const std::string& TinyModelPath() {
  static const std::string path = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
  return path;
}

llm_status OpenTinyModel(llm_model** model) {
  const std::string& path = TinyModelPath();
  llm_model_options options;
  llm_model_options_init(&options);
  options.num_threads = 2;
  options.kernels = {"reference", 9};
  return llm_model_open(path.data(), path.size(), &options, model);
}

llm_engine_options TinyEngineOptions(uint32_t drive) {
  llm_engine_options options;
  llm_engine_options_init(&options);
  options.drive = drive;
  options.num_threads = 2;
  options.kv_tokens = 256;
  options.max_context_tokens = 192;
  options.max_step_tokens = 64;
  options.max_sequences = 4;
  return options;
}

llm_status OpenTinyEngine(llm_model* model, uint32_t drive, llm_engine** engine) {
  const llm_engine_options options = TinyEngineOptions(drive);
  return llm_engine_open(model, &options, engine);
}

llm_request TinyRequest() {
  llm_request request;
  llm_request_init(&request);
  request.prompt_ids = kTinyPrompt;
  request.num_prompt_ids = std::size(kTinyPrompt);
  request.max_new_tokens = kTinyTokens;
  request.ignore_eos = LLM_ON;
  return request;
}

void Answer::Take(const llm_event& event) {
  if (event.type == LLM_EVENT_TOKENS && event.choice == 0) {
    for (size_t i = 0; i < event.num_tokens && num_ids < kTinyTokens; ++i) {
      ids[num_ids++] = event.token_ids[i];
    }
  }
  if (event.type != LLM_EVENT_FINISHED) return;
  ++num_finished;
  status = event.status;
}

bool ReadUntilFinished(llm_engine* engine, uint32_t drive, Answer* answer, Answer* other) {
  for (int round = 0; round < 100000 && answer->num_finished == 0; ++round) {
    if (drive == LLM_DRIVE_MANUAL) llm_engine_step(engine, nullptr);
    llm_event events[4];
    size_t count = 0;
    const int64_t wait_ns = drive == LLM_DRIVE_MANUAL ? 0 : 1000000;
    if (llm_poll(llm_engine_queue(engine), events, sizeof(events[0]), 4, wait_ns, &count) !=
        LLM_OK) {
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      (events[i].id == answer->id ? answer : other)->Take(events[i]);
    }
  }
  return answer->num_finished != 0;
}

llm_status AskOnce(llm_engine* engine, uint32_t drive, Answer* answer) {
  const llm_request request = TinyRequest();
  const llm_status submitted = llm_submit(engine, &request, &answer->id);
  if (submitted != LLM_OK) return submitted;
  Answer other;
  ReadUntilFinished(engine, drive, answer, &other);
  return answer->status;
}

}  // namespace llm
