/* Completes a text: the smallest program. Usage: 01_complete MODEL.gguf "text" */
#include <inlay/llm.h>
#include <stdio.h>

static int Fail(void) { return fprintf(stderr, "%s\n", llm_last_error()), 1; }

int main(int argc, char** argv) {
  llm_model* model = NULL;
  llm_engine* engine = NULL;
  llm_request request;
  llm_request_id id;
  llm_event event = {0};
  size_t count;
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL.gguf \"text\"\n", argv[0]), 2;
  if (llm_model_open(argv[1], strlen(argv[1]), NULL, &model) != LLM_OK) return Fail();
  if (llm_engine_open(model, NULL, &engine) != LLM_OK) return Fail();
  llm_request_init(&request);
  request.text.data = argv[2];
  request.text.size = strlen(argv[2]);
  request.max_new_tokens = 32;
  if (llm_submit(engine, &request, &id) != LLM_OK) return Fail();
  while (event.type != LLM_EVENT_FINISHED) {
    llm_queue* queue = llm_engine_queue(engine);
    if (llm_poll(queue, &event, sizeof event, 1, -1, &count) != LLM_OK) return Fail();
    if (count == 1) fwrite(event.text.data, 1, event.text.size, stdout);
  }
  puts("");
  if (event.status != LLM_OK)
    fprintf(stderr, "%.*s\n", (int)event.message.size, event.message.data);
  llm_engine_close(engine);
  llm_model_release(model);
  return event.status;
}
