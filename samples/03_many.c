/* Many requests at once on one queue that sits in an epoll loop. Usage: 03_many MODEL.gguf
 * [requests [metrics-socket]]: llm-top shows what it does through the socket. By hand:
 * cc -Iinclude -Isamples samples/03_many.c samples/common/metrics_export.c -pthread ... */
#include <inlay/llm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/metrics_export.h"

enum { kMaxRequests = 64, kEvents = 16 };

static int Fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, llm_last_error());
  return 1;
}

static int SubmitAll(llm_engine* engine, llm_queue* queue, int num_requests) {
  char text[kMaxRequests][64];
  int i;
  for (i = 0; i < num_requests; ++i) {
    llm_request request;
    llm_request_id id;
    llm_request_init(&request);
    request.text.size =
        (size_t)snprintf(text[i], sizeof text[i], "The number %d is special because", i);
    request.text.data = text[i];
    request.max_new_tokens = 24;
    request.queue = queue;
    request.user_data = (void*)(intptr_t)i;
    if (llm_submit(engine, &request, &id) != LLM_OK) return Fail("submit");
  }
  return 0;
}

/* Takes what the queue has; returns how many requests finished. */
static int Drain(llm_queue* queue) {
  llm_event events[kEvents];
  size_t count, i;
  int finished = 0;
  do {
    if (llm_poll(queue, events, sizeof events[0], kEvents, 0, &count) != LLM_OK) return -1;
    for (i = 0; i < count; ++i) {
      if (events[i].type != LLM_EVENT_FINISHED) continue;
      ++finished;
      printf("request %d: %d tokens, queued %.1f ms, first token after %.1f ms\n",
             (int)(intptr_t)events[i].user_data, events[i].stats->generated_tokens,
             (double)events[i].stats->queue_ns / 1e6, (double)events[i].stats->ttft_ns / 1e6);
    }
  } while (count == kEvents);
  return finished;
}

int main(int argc, char** argv) {
  const int num_requests = argc > 2 ? atoi(argv[2]) : 8;
  llm_model* model = NULL;
  llm_engine* engine = NULL;
  llm_queue* queue = NULL;
  metrics_export* metrics = NULL;
  struct epoll_event interest = {.events = EPOLLIN};
  int32_t fd;
  int loop, open_requests = num_requests;

  if (argc < 2 || num_requests < 1 || num_requests > kMaxRequests)
    return fprintf(stderr, "usage: %s MODEL.gguf [1..%d [metrics-socket]]\n", argv[0],
                   kMaxRequests),
           2;
  if (llm_model_open(argv[1], strlen(argv[1]), NULL, &model) != LLM_OK) return Fail("model");
  if (llm_engine_open(model, NULL, &engine) != LLM_OK) return Fail("engine");
  if (llm_queue_create(&queue) != LLM_OK || llm_queue_fd(queue, &fd) != LLM_OK)
    return Fail("queue");
  if (argc > 3 && (metrics = metrics_export_start(engine, NULL, argv[3])) == NULL)
    return perror(argv[3]), 1;
  loop = epoll_create1(EPOLL_CLOEXEC);
  if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &interest) != 0) return perror("epoll"), 1;

  if (SubmitAll(engine, queue, num_requests) != 0) return 1;
  while (open_requests > 0) {
    struct epoll_event ready;
    int finished;
    if (epoll_wait(loop, &ready, 1, -1) < 1) continue;
    finished = Drain(queue);
    if (finished < 0) return Fail("poll");
    open_requests -= finished;
  }
  close(loop);
  metrics_export_stop(metrics);
  llm_engine_close(engine);
  llm_queue_close(queue);
  llm_model_release(model);
  return 0;
}
