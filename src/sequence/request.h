// What the caller submitted; immutable once it is in the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/sequence/sampling_params.h"

namespace llm {

struct StopParams {
  int32_t max_new_tokens = 0;             // > 0
  int32_t min_new_tokens = 0;             // that many tokens end for no other reason than length
  std::vector<int32_t> end_ids;           // the model's end tokens; empty with ignore_eos
  std::vector<int32_t> stop_ids;          // the caller's
  std::vector<std::string> stop_strings;  // each not empty
  bool include_stop_string = false;       // false: the text ends before the stop string
};

struct Request {
  uint64_t id = 0;
  std::vector<int32_t> prompt;  // not empty
  SamplingParams sampling;
  StopParams stop;
  int32_t priority = 0;                 // lower first
  int64_t arrival_ns = 0;               // engine clock
  int64_t first_token_deadline_ns = 0;  // engine clock, absolute; 0: none
  int64_t completion_deadline_ns = 0;   // likewise
  int64_t first_token_cost_ns = 0;      // predicted at submit, were it alone; 0: unknown
  int64_t token_gap_target_ns = 0;      // wished between two tokens; 0: none
  std::string cache_salt;               // prefixes are shared only between equal salts
  uint64_t adapter_id = 0;              // likewise
  bool long_rope = false;               // likewise; fixed at submit by the prompt's length
  uint64_t session_id = 0;              // what session hints name; 0: none
  uint32_t request_class = 0;           // outputs of one class are expected to be alike
  uint64_t trace_id = 0;                // the host's, shown in traces; 0: none
  bool use_prefix_cache = true;
  // -1: none; k >= 0: of each prompt token from the second on, and of the k most likely ones.
  int32_t num_prompt_logprobs = -1;

  // What the prefix cache tells apart beside the salt.
  uint64_t cache_variant() const { return adapter_id << 1 | (long_rope ? 1 : 0); }
};

}  // namespace llm
