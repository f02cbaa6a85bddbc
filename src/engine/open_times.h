// What a model's and an engine's open took.
#pragma once

#include <cstdint>

namespace llm {

// How long opening took, by stage. Reading, repacking and checking overlap on several threads:
// theirs are the sums of what each thread spent.
struct OpenTimes {
  int64_t model_ns = 0;  // the whole open of the model; its parts follow
  int64_t header_ns = 0;
  int64_t tokenizer_ns = 0;  // and the chat template
  int64_t read_ns = 0;
  int64_t repack_ns = 0;
  int64_t check_ns = 0;
  int64_t engine_ns = 0;  // the whole open of the engine
};

}  // namespace llm
