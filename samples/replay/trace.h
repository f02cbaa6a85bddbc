// What is replayed: requests as lengths and times of arrival.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace replay {

struct TraceRequest {
  int64_t arrival_ns = 0;  // from the start
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;
};

struct TraceOptions {
  std::string path;  // empty: exponentially distributed lengths of these means
  uint64_t requests =
      0;             // as many, from the start again where the file has fewer; 0: those of the file
  double rate = 1;   // arrivals a second, with exponential gaps
  double scale = 1;  // lengths are divided by it
  unsigned mean_prompt = 128, mean_output = 64;
  unsigned most_prompt = 1024, most_output = 512;  // longer ones are cut
  uint64_t seed = 1;
};

// Reads a CSV file whose header names a column of prompt tokens and one of output tokens
// (num_prefill_tokens or ContextTokens, num_decode_tokens or GeneratedTokens). Exits with a message
// on a mistake.
std::vector<TraceRequest> MakeTrace(const TraceOptions& options);

// Of the same seed the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  double Uniform();  // in (0, 1]
  double Exponential(double mean);

 private:
  uint64_t state_;
};

}  // namespace replay
