/* Loads and unloads the library 100 times, with an engine at work in between, and fails when a
 * thread, a descriptor, a mapping or memory is left. Usage: unload LIBRARY MODEL */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <inlay/llm.h>
#include <malloc.h>
#include <stdio.h>

/* Rounds until the C library, the loader and the packages that stay have taken what they keep. */
enum { kWarmUp = 10, kRounds = 100 };

#define LOAD(name)                                                       \
  __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name); \
  if (p_##name == NULL) return #name

static const char* generate(void* library, const char* path) {
  static const int32_t ids[] = {1, 2, 3, 4, 5};
  llm_model* model = NULL;
  llm_engine* engine = NULL;
  llm_engine_options options;
  llm_request request;
  llm_request_id id;
  llm_event event;
  size_t count;
  int32_t fd;
  LOAD(llm_model_open);
  LOAD(llm_engine_open);
  LOAD(llm_submit);
  LOAD(llm_poll);
  LOAD(llm_engine_queue);
  LOAD(llm_queue_fd);
  LOAD(llm_engine_close);
  LOAD(llm_model_release);
  llm_engine_options_init(&options);
  options.num_threads = 2;
  options.kv_tokens = 512;
  options.max_step_tokens = 64;
  if (p_llm_model_open(path, strlen(path), NULL, &model) != LLM_OK) return "model";
  if (p_llm_engine_open(model, &options, &engine) != LLM_OK) return "engine";
  if (p_llm_queue_fd(p_llm_engine_queue(engine), &fd) != LLM_OK) return "fd";
  llm_request_init(&request);
  request.prompt_ids = ids;
  request.num_prompt_ids = sizeof ids / sizeof ids[0];
  request.max_new_tokens = 4;
  request.ignore_eos = LLM_ON;
  if (p_llm_submit(engine, &request, &id) != LLM_OK) return "submit";
  do {
    if (p_llm_poll(p_llm_engine_queue(engine), &event, sizeof event, 1, -1, &count) != LLM_OK)
      return "poll";
  } while (event.type != LLM_EVENT_FINISHED);
  if (event.status != LLM_OK) return "finished";
  if (p_llm_engine_close(engine) != LLM_OK) return "close";
  p_llm_model_release(model);
  return NULL;
}

static int entries(const char* path) {
  DIR* folder = opendir(path);
  int count = 0;
  if (folder == NULL) return -1;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static int is_mapped(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int found = 0;
  if (maps == NULL) return -1;
  while (fgets(line, sizeof line, maps) != NULL) found |= strstr(line, "libinlay") != NULL;
  fclose(maps);
  return found;
}

int main(int argc, char** argv) {
  size_t base_bytes = 0, bytes = 0;
  int base_fds = 0, round;
  if (argc != 3) return 2;
  for (round = 0; round < kRounds; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    const char* failed;
    if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
    failed = generate(library, argv[2]);
    if (failed != NULL) return fprintf(stderr, "round %d: %s failed\n", round, failed), 1;
    dlclose(library);
    if (is_mapped() != 0) return fprintf(stderr, "round %d: still mapped\n", round), 1;
    if (entries("/proc/self/task") != 3)
      return fprintf(stderr, "round %d: a thread is left\n", round), 1;
    bytes = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (round + 1 == kWarmUp) {
      base_bytes = bytes;
      base_fds = entries("/proc/self/fd");
    }
  }
  printf("%zu bytes in use after %d rounds, %zu after %d\n", base_bytes, kWarmUp, bytes, kRounds);
  if (entries("/proc/self/fd") != base_fds) return fprintf(stderr, "a descriptor is left\n"), 1;
  return bytes > base_bytes;
}
