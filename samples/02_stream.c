/* Streams a chat answer from callbacks and waits for its end. Usage: 02_stream MODEL.gguf
 * "question" */
#include <inlay/llm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct Answer {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int finished;
  llm_status status;
};

/* Runs on the engine's delivery thread. What the event points to is only lent for the call. */
static void OnEvent(void* user_data, const llm_event* event) {
  struct Answer* answer = user_data;
  fwrite(event->text.data, 1, event->text.size, stdout);
  fflush(stdout);
  if (event->type != LLM_EVENT_FINISHED) return;
  printf("\n[%d tokens, first after %.1f ms]\n", event->stats->generated_tokens,
         (double)event->stats->ttft_ns / 1e6);
  pthread_mutex_lock(&answer->mutex);
  answer->finished = 1;
  answer->status = event->status;
  pthread_cond_signal(&answer->changed);
  pthread_mutex_unlock(&answer->mutex);
}

static int Fail(void) {
  fprintf(stderr, "%s\n", llm_last_error());
  return 1;
}

int main(int argc, char** argv) {
  struct Answer answer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, LLM_OK};
  llm_model* model = NULL;
  llm_engine* engine = NULL;
  llm_request request;
  llm_request_id id;
  char chat[4096];
  const char* c;
  size_t n;

  if (argc != 3) return fprintf(stderr, "usage: %s MODEL.gguf \"question\"\n", argv[0]), 2;
  n = (size_t)snprintf(chat, sizeof chat, "[{\"role\": \"user\", \"content\": \"");
  for (c = argv[2]; *c != 0 && n + 16 < sizeof chat;
       ++c) { /* JSON: quotes, backslashes, control characters */
    if (*c == '"' || *c == '\\') {
      chat[n++] = '\\';
      chat[n++] = *c;
    } else if ((unsigned char)*c < 0x20) {
      n += (size_t)snprintf(chat + n, 7, "\\u%04x", (unsigned)*c);
    } else {
      chat[n++] = *c;
    }
  }
  if (*c != 0) return fprintf(stderr, "the question is too long\n"), 2;
  n += (size_t)snprintf(chat + n, sizeof chat - n, "\"}]");

  if (llm_model_open(argv[1], strlen(argv[1]), NULL, &model) != LLM_OK) return Fail();
  if (llm_engine_open(model, NULL, &engine) != LLM_OK) return Fail();
  llm_request_init(&request);
  request.chat.data = chat;
  request.chat.size = n;
  request.max_new_tokens = 64;
  request.on_event = OnEvent;
  request.user_data = &answer;
  if (llm_submit(engine, &request, &id) != LLM_OK) return Fail();

  pthread_mutex_lock(&answer.mutex);
  while (!answer.finished) pthread_cond_wait(&answer.changed, &answer.mutex);
  pthread_mutex_unlock(&answer.mutex);
  llm_engine_close(engine);
  llm_model_release(model);
  return answer.status == LLM_OK ? 0 : 1;
}
