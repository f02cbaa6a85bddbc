// Chooses what becomes of the bytes, and ends the process at a fault.
#include "tests/fuzz/file_fuzz.h"

#include <cstdio>
#include <cstdlib>

namespace llm {

int FuzzFile(const uint8_t* data, size_t size, const char* fuzzer, void (*complete)(std::string*),
             std::string (*walk)(const std::string&)) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 != 0) complete(&bytes);
  const std::string fault = walk(bytes);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", fuzzer, fault.c_str());
  std::abort();
}

}  // namespace llm
