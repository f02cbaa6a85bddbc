/* A program of ABI 1.0, kept as it was: built against the header beside it, and as the binary that
 * was built then, it must work with every later library of this major version. Usage: client MODEL
 */
#include <inlay/llm.h>
#include <stdio.h>

static int num_finished = 0;

#define CHECK(what)                                                               \
  do {                                                                            \
    if (!(what)) {                                                                \
      printf("line %d: %s\nlast error: %s\n", __LINE__, #what, llm_last_error()); \
      return 1;                                                                   \
    }                                                                             \
  } while (0)

static void on_event(void* user_data, const llm_event* event) {
  (void)user_data;
  if (event->type == LLM_EVENT_FINISHED && event->status == LLM_OK &&
      event->finish_reason == LLM_FINISH_LENGTH && event->stats->generated_tokens == 4 &&
      event->stats->struct_size >= sizeof(llm_request_stats)) {
    ++num_finished;
  }
}

static int32_t on_row(void* user_data, const llm_score_row* row) {
  *(uint64_t*)user_data += row->position;
  return row->num_logits > 0 && row->logits[row->id] == row->logits[row->id] ? 0 : 1;
}

static void on_log(void* user_data, int32_t level, const char* message, uint64_t size) {
  (void)level;
  (void)message;
  *(uint64_t*)user_data += size;
}

static int check_plan(const char* path) {
  llm_model_source source;
  llm_memory_plan plan;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path.data = path;
  source.path.size = strlen(path);
  llm_memory_plan_init(&plan);
  CHECK(llm_plan(&source, NULL, NULL, &plan) == LLM_OK);
  CHECK(plan.weights_bytes > 0 && plan.kv_bytes > 0 && plan.kv_tokens > 0);
  return 0;
}

static int check_text(const llm_model* model) {
  static const char text[] = "Hello";
  llm_model_info info;
  int32_t ids[16];
  char back[64];
  size_t count = 0, size = 0;
  llm_model_info_init(&info);
  CHECK(llm_model_get_info(model, &info) == LLM_OK);
  CHECK(info.vocab_size > 0 && info.architecture.size > 0);
  CHECK(llm_tokenize(model, text, sizeof text - 1, LLM_TEXT_ADD_SPECIAL, ids, 16, &count) ==
        LLM_OK);
  CHECK(count > 0 && count <= 16);
  CHECK(llm_detokenize(model, ids, count, 0, back, sizeof back, &size) == LLM_OK);
  CHECK(llm_chat_render(model, "{", 1, back, sizeof back, &size) != LLM_OK);
  CHECK(strlen(llm_last_error()) > 0);
  return 0;
}

static int check_requests(llm_engine* engine) {
  static const int32_t prompt[] = {1, 2, 3, 4, 5};
  static const llm_string stop = {"\x01\x02", 2};
  llm_queue* queue = NULL;
  llm_request request;
  llm_request_id id = 0, polled = 0;
  llm_event events[8];
  llm_logit_bias bias = {6, 0.5f};
  size_t count = 0, i, tokens = 0;
  uint32_t worked = 1;
  int32_t fd = -1;
  CHECK(llm_queue_create(&queue) == LLM_OK && llm_queue_fd(queue, &fd) == LLM_OK && fd >= 0);
  llm_request_init(&request);
  request.prompt_ids = prompt;
  request.num_prompt_ids = 5;
  request.max_new_tokens = 4;
  request.ignore_eos = LLM_ON;
  request.on_event = on_event;
  CHECK(llm_submit(engine, &request, &id) == LLM_OK && id != 0);
  request.on_event = NULL;
  request.queue = queue;
  request.temperature = 0.7f;
  request.top_k = 40;
  request.top_p = 0.9f;
  request.seed = 0;
  request.num_logprobs = 0;
  request.set = LLM_SET_SEED | LLM_SET_NUM_LOGPROBS;
  request.stop_strings = &stop;
  request.num_stop_strings = 1;
  request.logit_bias = &bias;
  request.num_logit_bias = 1;
  request.logit_bias_size = sizeof bias;
  request.user_data = &num_finished;
  CHECK(llm_submit(engine, &request, &polled) == LLM_OK && polled != id);
  CHECK(llm_submit(engine, &request, &id) == LLM_OK && llm_cancel(engine, id) == LLM_OK);
  while (worked) CHECK(llm_engine_step(engine, &worked) == LLM_OK);
  CHECK(num_finished == 1);
  CHECK(llm_poll(queue, events, sizeof events[0], 8, 0, &count) == LLM_OK && count >= 2);
  for (i = 0; i < count; ++i) {
    CHECK(events[i].user_data == &num_finished);
    if (events[i].type == LLM_EVENT_TOKENS) {
      CHECK(events[i].id == polled && events[i].logprobs_per_token == 1);
      CHECK(events[i].logprobs[0].id == events[i].token_ids[0] &&
            events[i].logprobs[0].logprob <= 0);
      tokens += events[i].num_tokens;
    } else if (events[i].type == LLM_EVENT_FINISHED) {
      CHECK(events[i].status == (events[i].id == id ? LLM_CANCELLED : LLM_OK));
      CHECK(events[i].id == id || events[i].stats->seed == 0);
    }
  }
  CHECK(tokens == 4);
  CHECK(llm_queue_close(queue) == LLM_OK);
  return 0;
}

static int check_score(llm_engine* engine) {
  static const int32_t ids[] = {1, 2, 3, 4};
  llm_score_request score;
  float logprobs[4];
  size_t count = 0;
  uint64_t positions = 0;
  llm_score_request_init(&score);
  score.ids = ids;
  score.num_ids = 4;
  score.on_row = on_row;
  score.user_data = &positions;
  CHECK(llm_score(engine, &score, logprobs, 4, &count) == LLM_OK);
  CHECK(count == 3 && positions == 1 + 2 + 3 && logprobs[2] <= 0);
  return 0;
}

static int check_counters(llm_engine* engine) {
  static char text[65536];
  llm_metrics_snapshot metrics;
  llm_histogram histogram;
  size_t size = 0;
  llm_metrics_snapshot_init(&metrics);
  llm_histogram_init(&histogram);
  CHECK(llm_cache_flush(engine) == LLM_OK);
  CHECK(llm_metrics(engine, &metrics) == LLM_OK);
  CHECK(metrics.healthy == 1 && metrics.submitted_requests_total >= 3 &&
        metrics.generated_tokens_total >= 8);
  CHECK(metrics.cancelled_requests_total == 1 && metrics.kv_bytes_current > 0);
  CHECK(llm_metrics_histogram(engine, LLM_HISTOGRAM_TTFT, &histogram) == LLM_OK);
  CHECK(histogram.count == 2 && histogram.num_buckets > 1 && histogram.edges[0] > 0);
  CHECK(llm_metrics_text(engine, text, sizeof text, &size) == LLM_OK && size > 0 &&
        size <= sizeof text);
  return 0;
}

int main(int argc, char** argv) {
  llm_model* model = NULL;
  llm_engine* engine = NULL;
  llm_model_options model_options;
  llm_engine_options options;
  uint64_t logged = 0;
  CHECK(argc == 2);
  CHECK(llm_abi_version() >> 16 == LLM_ABI_MAJOR && llm_abi_version() >= (1u << 16));
  CHECK(strcmp(llm_status_name(LLM_RESOURCE_EXHAUSTED), "RESOURCE_EXHAUSTED") == 0);
  if (check_plan(argv[1])) return 1;
  llm_model_options_init(&model_options);
  model_options.device = LLM_DEVICE_CPU;
  model_options.num_threads = 1;
  model_options.log = on_log;
  model_options.log_user_data = &logged;
  CHECK(llm_model_open(argv[1], strlen(argv[1]), &model_options, &model) == LLM_OK);
  CHECK(logged > 0);
  if (check_text(model)) return 1;
  llm_engine_options_init(&options);
  options.drive = LLM_DRIVE_MANUAL;
  options.num_threads = 1;
  options.kv_tokens = 512;
  options.kv_dtype = LLM_KV_F32;
  options.max_step_tokens = 64;
  CHECK(llm_engine_open(model, &options, &engine) == LLM_OK);
  llm_model_release(model);
  CHECK(llm_engine_queue(engine) != NULL);
  if (check_requests(engine) || check_score(engine) || check_counters(engine)) return 1;
  CHECK(llm_engine_shutdown(engine, -1) == LLM_OK);
  CHECK(llm_engine_close(engine) == LLM_OK);
  puts("OK");
  return 0;
}
