// Any bytes as the two parts of a GGUF file: opened and walked, or refused with a message. Two
// bytes say how long the first part is.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/loader/split_gguf.h"
#include "tests/fuzz/gguf_walk.h"

namespace llm {
namespace {

const std::string& Stem() {
  static const std::string stem = [] {
    const auto path = std::filesystem::temp_directory_path() /
                      ("inlay_split_gguf_fuzz_" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
    return path.string() + "/m";
  }();
  return stem;
}

std::string Walk(const std::string& bytes) {
  if (bytes.size() < 2) return "";
  const size_t length = static_cast<uint8_t>(bytes[0]) + 256u * static_cast<uint8_t>(bytes[1]);
  const std::string first = bytes.substr(2, length);
  const std::string paths[] = {Stem() + "-00001-of-00002.gguf", Stem() + "-00002-of-00002.gguf"};
  std::ofstream(paths[0], std::ios::binary) << first;
  std::ofstream(paths[1], std::ios::binary) << bytes.substr(2 + first.size());
  for (const std::string& path : paths) {
    auto file = OpenGgufParts(path, LoaderLimits());
    if (!file.ok()) {
      if (file.status().message().empty()) return "refused without a message";
      continue;
    }
    const uint64_t size = (*file)->size();
    const auto source = OpenGguf(*std::move(file), LoaderLimits());
    if (!source.ok()) {
      if (source.status().message().empty()) return "refused without a message";
      continue;
    }
    if (std::string fault = WalkWeightSource(**source, size); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = llm::Walk({reinterpret_cast<const char*>(data), size});
  if (!fault.empty()) {
    std::fprintf(stderr, "split_gguf_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
