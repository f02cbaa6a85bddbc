// Sequences of API calls, with requests, callbacks and hooks that the bytes choose.
#include "tests/fuzz/api_sequence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxBytes = 4096;
  llm::RunApiSequence(data, size < kMaxBytes ? size : kMaxBytes);
  return 0;
}
