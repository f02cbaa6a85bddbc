// Any bytes as a GGUF file: opened and walked, or refused with a message.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/gguf_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = llm::WalkGguf(data, size);
  if (!fault.empty()) {
    std::fprintf(stderr, "gguf_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
