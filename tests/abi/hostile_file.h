// A copy of a model file whose bytes a test may change and put back, and a run through all of it.
#pragma once

#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/abi/abi_fixture.h"

namespace llm {

inline std::string ReadTestFile(const std::string& name) {
  std::ifstream file(std::string(INLAY_TEST_DATA) + "/gguf/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// How far a file got, and how its request ended.
struct HostileRun {
  llm_status open = LLM_OK;
  llm_status engine = LLM_OK;
  llm_status submit = LLM_OK;
  llm_status finish = LLM_UNKNOWN;  // of FINISHED; LLM_UNKNOWN: it never came
  int num_finished = 0;
  bool healthy = true;
  std::string message;  // of the first call that failed, or of FINISHED

  bool survived() const { return submit == LLM_OK && engine == LLM_OK && open == LLM_OK; }
};

class HostileFile {
 public:
  // Each test process has its own file, since ctest runs them side by side.
  HostileFile() : path_(testing::TempDir() + "inlay_hostile_" + std::to_string(getpid())) {}
  ~HostileFile() { std::remove(path_.c_str()); }
  HostileFile(const HostileFile&) = delete;
  HostileFile& operator=(const HostileFile&) = delete;

  void Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  const std::string& path() const { return path_; }

  // Opens the file, asks for texts, and generates three tokens by hand-driven steps.
  HostileRun Run(const char* kernels) const;

 private:
  const std::string path_;
};

}  // namespace llm
