// What every test of faults does with the library, through the C ABI alone: a tiny model, engines
// on it, one request and its answer. Nothing here allocates or fails a test: faults may be on.
#pragma once

#include <inlay/llm.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace llm {

inline constexpr int kTinyTokens = 6;
inline constexpr int32_t kTinyPrompt[] = {1, 2, 3, 4, 5};

const std::string& TinyModelPath();
llm_status OpenTinyModel(llm_model** model);
llm_engine_options TinyEngineOptions(uint32_t drive);
llm_status OpenTinyEngine(llm_model* model, uint32_t drive, llm_engine** engine);
// kTinyPrompt, greedily continued by kTinyTokens tokens.
llm_request TinyRequest();

// What a host sees of one request; tokens of choice 0 alone.
struct Answer {
  llm_request_id id = 0;
  int32_t ids[kTinyTokens] = {};
  size_t num_ids = 0;
  int num_finished = 0;
  llm_status status = LLM_UNKNOWN;

  void Take(const llm_event& event);
};

// Reads events of the engine's queue until `answer` has ended; other requests' go to `other`. Polls
// that fail are tried again. False: it gave up.
bool ReadUntilFinished(llm_engine* engine, uint32_t drive, Answer* answer, Answer* other);

// One TinyRequest, from submit to FINISHED.
llm_status AskOnce(llm_engine* engine, uint32_t drive, Answer* answer);

}  // namespace llm
