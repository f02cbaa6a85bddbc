// Requests of one new token, and what programs that measure do on a failed call: say so and end.
#pragma once

#include <inlay/llm.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace bench {

inline int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline void Check(llm_status status) {
  if (status == LLM_OK) return;
  std::fprintf(stderr, "%s: %s\n", llm_status_name(status), llm_last_error());
  std::exit(1);
}

inline void SubmitOneToken(llm_engine* engine, const std::vector<int32_t>& ids) {
  llm_request request;
  llm_request_init(&request);
  request.prompt_ids = ids.data();
  request.num_prompt_ids = ids.size();
  request.max_new_tokens = 1;
  request.ignore_eos = LLM_ON;
  llm_request_id id = 0;
  Check(llm_submit(engine, &request, &id));
}

// Of the next one that ends.
inline int64_t WaitForTtft(llm_engine* engine) {
  llm_event event;
  size_t count = 0;
  do {
    Check(llm_poll(llm_engine_queue(engine), &event, sizeof event, 1, -1, &count));
  } while (count == 0 || event.type != LLM_EVENT_FINISHED);
  Check(event.status);
  return event.stats->ttft_ns;
}

}  // namespace bench
