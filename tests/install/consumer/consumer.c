/* A host outside the tree: opens the model, generates four tokens, prints their ids. With the word
 * "gpu" after the model on a GPU alone. */
#include <inlay/llm.h>
#include <stdio.h>

int main(int argc, char** argv) {
  static const int32_t ids[] = {1, 2, 3, 4, 5};
  llm_model* model = NULL;
  llm_engine* engine = NULL;
  llm_model_options model_options;
  llm_engine_options options;
  llm_request request;
  llm_request_id id;
  llm_event event;
  size_t count, i;
  if (argc < 2) return 2;
  llm_model_options_init(&model_options);
  if (argc > 2) model_options.device = LLM_DEVICE_CUDA;
  llm_engine_options_init(&options);
  options.num_threads = 1;
  options.kv_tokens = 512;
  options.max_step_tokens = 64;
  if (llm_model_open(argv[1], strlen(argv[1]), &model_options, &model) != LLM_OK ||
      llm_engine_open(model, &options, &engine) != LLM_OK)
    return fprintf(stderr, "%s\n", llm_last_error()), 1;
  llm_request_init(&request);
  request.prompt_ids = ids;
  request.num_prompt_ids = sizeof ids / sizeof ids[0];
  request.max_new_tokens = 4;
  request.ignore_eos = LLM_ON;
  if (llm_submit(engine, &request, &id) != LLM_OK)
    return fprintf(stderr, "%s\n", llm_last_error()), 1;
  do {
    if (llm_poll(llm_engine_queue(engine), &event, sizeof event, 1, -1, &count) != LLM_OK) return 1;
    for (i = 0; i < event.num_tokens; ++i) printf("%d ", (int)event.token_ids[i]);
  } while (event.type != LLM_EVENT_FINISHED);
  puts(llm_status_name(event.status));
  if (llm_engine_close(engine) != LLM_OK) return 1;
  llm_model_release(model);
  return event.status;
}
