/* A program of ABI 1.0, kept as it was: built against the header beside it, and as the binary that
 * was built then, it must work with every later library of this major version. Usage: client MODEL
 */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <inlay/llm.h>
#include <stdio.h>
#include <stdlib.h>

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

static void* allocate(void* user_data, size_t bytes, size_t alignment) {
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, bytes) != 0) return NULL;
  *(int64_t*)user_data += 1;
  return memory;
}

static void deallocate(void* user_data, void* memory, size_t bytes) {
  (void)bytes;
  *(int64_t*)user_data -= 1;
  free(memory);
}

static void run(void* user_data, void (*task)(void* data, uint32_t index), void* data,
                uint32_t count) {
  (void)user_data;
  while (count-- > 0) task(data, count);
}

static int64_t now_ns(void* user_data) { return *(int64_t*)user_data += 1000; }

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

static int check_embed(llm_engine* engine) {
  static const int32_t ids[] = {1, 2, 3, 4};
  llm_embed_request embed;
  float values[4096];
  float squares = 0;
  size_t count = 0, i;
  llm_embed_request_init(&embed);
  embed.ids = ids;
  embed.num_ids = 4;
  embed.pooling = LLM_POOLING_LAST;
  CHECK(llm_embed(engine, &embed, values, 4096, &count) == LLM_OK && count > 0 && count <= 4096);
  for (i = 0; i < count; ++i) squares += values[i] * values[i];
  CHECK(squares > 0.99f && squares < 1.01f);
  return 0;
}

static int check_choices(llm_engine* engine) {
  static const int32_t prompt[] = {9, 8, 7, 6, 5};
  llm_request request;
  llm_request_id id = 0;
  llm_event events[16];
  size_t count = 0, i, prompt_tokens = 0, choices = 0, finished = 0;
  uint32_t worked = 1;
  llm_request_init(&request);
  request.prompt_ids = prompt;
  request.num_prompt_ids = 5;
  request.choices = 2;
  request.temperature = 1;
  request.max_new_tokens = 4;
  request.ignore_eos = LLM_ON;
  request.session_id = 7;
  request.num_prompt_logprobs = 0;
  request.set = LLM_SET_NUM_PROMPT_LOGPROBS;
  CHECK(llm_submit(engine, &request, &id) == LLM_OK);
  while (worked) CHECK(llm_engine_step(engine, &worked) == LLM_OK);
  CHECK(llm_session_hint(engine, 7, LLM_HINT_TOOL_CALL) == LLM_OK);
  CHECK(llm_session_close(engine, 7) == LLM_OK);
  CHECK(llm_poll(llm_engine_queue(engine), events, sizeof events[0], 16, 0, &count) == LLM_OK);
  for (i = 0; i < count; ++i) {
    CHECK(events[i].id == id && finished == 0);
    if (events[i].type == LLM_EVENT_PROMPT) prompt_tokens += events[i].num_tokens;
    if (events[i].type == LLM_EVENT_CHOICE_FINISHED) ++choices;
    if (events[i].type == LLM_EVENT_FINISHED) ++finished;
  }
  CHECK(prompt_tokens == 4 && choices == 2 && finished == 1);
  return 0;
}

static int check_pins(llm_engine* engine) {
  int32_t ids[32];
  llm_prefix prefix;
  llm_pin_id pin = 0;
  int32_t i;
  for (i = 0; i < 32; ++i) ids[i] = i;
  llm_prefix_init(&prefix);
  prefix.prompt_ids = ids;
  prefix.num_prompt_ids = 32;
  CHECK(llm_prefix_pin(engine, &prefix, &pin) == LLM_OK && pin != 0);
  CHECK(llm_prefix_unpin(engine, pin) == LLM_OK && llm_prefix_unpin(engine, pin) == LLM_NOT_FOUND);
  return 0;
}

static int check_records(llm_engine* engine) {
  llm_step_record steps[4];
  llm_request_record records[4];
  uint64_t cursor = 0;
  size_t count = 0;
  CHECK(llm_step_records_read(engine, &cursor, steps, sizeof steps[0], 4, &count) == LLM_OK);
  CHECK(count == 4 && cursor == 4 && steps[3].index == 3 && steps[0].end_ns > steps[0].begin_ns);
  cursor = 0;
  CHECK(llm_request_records_read(engine, &cursor, records, sizeof records[0], 4, &count) == LLM_OK);
  CHECK(count == 4 && records[0].kind == LLM_RECORD_ENQUEUED && records[0].tokens == 5);
  return 0;
}

static int check_listing(const llm_model* model) {
  llm_model_info info;
  llm_tensor_info tensor;
  llm_string key, value;
  llm_model_info_init(&info);
  llm_tensor_info_init(&tensor);
  CHECK(llm_model_get_info(model, &info) == LLM_OK && info.num_tensors > 0 && info.open_ns > 0);
  CHECK(llm_model_tensor(model, 0, &tensor) == LLM_OK && tensor.size_bytes > 0 &&
        tensor.name.size > 0);
  CHECK(llm_model_tensor(model, info.num_tensors, &tensor) == LLM_OUT_OF_RANGE);
  CHECK(llm_model_metadata(model, 0, &key, &value) == LLM_OK && key.size > 0);
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
  llm_host host;
  uint64_t logged = 0;
  int64_t allocations = 0, time_ns = 0;
  CHECK(argc == 2);
  CHECK(llm_abi_version() >> 16 == LLM_ABI_MAJOR && llm_abi_version() >= (1u << 16));
  CHECK(strcmp(llm_status_name(LLM_RESOURCE_EXHAUSTED), "RESOURCE_EXHAUSTED") == 0);
  if (check_plan(argv[1])) return 1;
  llm_model_options_init(&model_options);
  model_options.device = LLM_DEVICE_CPU;
  model_options.num_threads = 1;
  model_options.log = on_log;
  model_options.log_user_data = &logged;
  llm_host_init(&host);
  host.allocate = allocate;
  host.deallocate = deallocate;
  host.allocator_user_data = &allocations;
  host.run = run;
  host.now_ns = now_ns;
  host.clock_user_data = &time_ns;
  model_options.host = &host;
  CHECK(llm_model_open(argv[1], strlen(argv[1]), &model_options, &model) == LLM_OK);
  CHECK(logged > 0);
  CHECK(allocations > 0);
  if (check_text(model) || check_listing(model)) return 1;
  llm_engine_options_init(&options);
  options.drive = LLM_DRIVE_MANUAL;
  options.num_threads = 1;
  options.kv_tokens = 512;
  options.kv_dtype = LLM_KV_F32;
  options.max_step_tokens = 64;
  options.max_context_tokens = 256;
  options.host = &host;
  CHECK(llm_engine_open(model, &options, &engine) == LLM_OK);
  llm_model_release(model);
  CHECK(llm_engine_queue(engine) != NULL);
  if (check_requests(engine) || check_records(engine) || check_score(engine)) return 1;
  if (check_counters(engine) || check_embed(engine) || check_choices(engine)) return 1;
  if (check_pins(engine)) return 1;
  CHECK(llm_engine_shutdown(engine, -1) == LLM_OK);
  CHECK(llm_engine_close(engine) == LLM_OK);
  CHECK(allocations == 0);
  puts("OK");
  return 0;
}
