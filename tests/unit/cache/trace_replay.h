// Replays recorded prompts, known by the ids of their blocks, through the real block manager.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/cache/block_manager.h"

namespace llm {

struct TraceRequest {
  int64_t input_tokens = 0;
  double api_s = 0.0;         // how long its answer took
  double think_s = 0.0;       // between the end of the one before it in its session and its start
  char stop = 0;              // 'T': a tool call, 'E': end of turn, 0: not told
  std::vector<int32_t> runs;  // first id, count, first id, count, ...
};
using TraceSession = std::vector<TraceRequest>;

// A trace of single requests is one session, which ends nowhere. Empty when the file is absent.
std::vector<TraceSession> ReadTrace(const std::string& path);

enum class LaneOrder { kRoundRobin, kTimed };

struct ReplayOptions {
  int capacity = 0;      // blocks
  int block_tokens = 0;  // only scales the hit rate
  int lanes = 1;         // sessions that are served at the same time
  LaneOrder order = LaneOrder::kRoundRobin;
  bool hints = false;  // each request's stop reason, and the end of each session
};

// Input tokens found in the cache over all input tokens.
double ReplayHitRate(const std::vector<TraceSession>& sessions, const ReplayOptions& options);

}  // namespace llm
