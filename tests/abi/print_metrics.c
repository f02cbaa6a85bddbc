/* Answers one request and prints the engine's Prometheus text. Usage: print_metrics MODEL.gguf */
#include <inlay/llm.h>
#include <stdio.h>

int main(int argc, char** argv) {
  static const int32_t ids[] = {1, 2, 3, 4, 5};
  static char text[1 << 16];
  llm_model* model = NULL;
  llm_engine* engine = NULL;
  llm_engine_options options;
  llm_request request;
  llm_request_id id;
  uint32_t worked = 1;
  size_t size;
  if (argc != 2) return 2;
  llm_engine_options_init(&options);
  options.drive = LLM_DRIVE_MANUAL;
  options.num_threads = 1;
  options.kv_tokens = 512;
  options.max_step_tokens = 64;
  if (llm_model_open(argv[1], strlen(argv[1]), NULL, &model) != LLM_OK ||
      llm_engine_open(model, &options, &engine) != LLM_OK)
    return fprintf(stderr, "%s\n", llm_last_error()), 1;
  llm_request_init(&request);
  request.prompt_ids = ids;
  request.num_prompt_ids = sizeof ids / sizeof ids[0];
  request.max_new_tokens = 4;
  request.ignore_eos = LLM_ON;
  if (llm_submit(engine, &request, &id) != LLM_OK) return 1;
  while (worked != 0)
    if (llm_engine_step(engine, &worked) != LLM_OK) return 1;
  if (llm_metrics_text(engine, text, sizeof text, &size) != LLM_OK || size > sizeof text) return 1;
  fwrite(text, 1, size, stdout);
  if (llm_engine_close(engine) != LLM_OK) return 1;
  llm_model_release(model);
  return 0;
}
