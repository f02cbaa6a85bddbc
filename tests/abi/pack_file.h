// Packs made through the C ABI, in a folder that goes with the object.
#pragma once

#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/abi/abi_fixture.h"

namespace llm {

inline std::string TestModel(const std::string& name) {
  return std::string(INLAY_TEST_DATA) + "/gguf/" + name;
}

inline llm_model_source PathSource(const std::string& path) {
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = {path.data(), path.size()};
  return source;
}

inline std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteWhole(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class PackFolder {
 public:
  PackFolder() {
    std::string name = testing::TempDir() + "inlay_pack_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~PackFolder() { std::filesystem::remove_all(path_); }
  PackFolder(const PackFolder&) = delete;
  PackFolder& operator=(const PackFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  size_t NumFiles() const {
    const std::filesystem::directory_iterator entries(path_);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
  // The pack of a model, for the kernels named.
  std::string Pack(const std::string& model, const char* kernels) const {
    std::string path = File("model.llmpack");
    llm_model_options options;
    llm_model_options_init(&options);
    options.kernels = Str(kernels);
    const llm_model_source source = PathSource(model);
    EXPECT_EQ(llm_model_save(&source, &options, path.data(), path.size()), LLM_OK)
        << llm_last_error();
    return path;
  }

 private:
  std::string path_;
};

}  // namespace llm
