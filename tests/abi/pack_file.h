// Models opened by path, and packs made through the C ABI in a folder that goes with the object.
#pragma once

#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

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

// A test of one model at a time.
class OpenedModelTest : public testing::Test {
 protected:
  OpenedModelTest() { llm_model_options_init(&options_); }
  ~OpenedModelTest() override { llm_model_release(model_); }

  llm_status Open(const std::string& path) {
    llm_model_release(model_);
    model_ = nullptr;
    return llm_model_open(path.data(), path.size(), &options_, &model_);
  }
  // A small manual engine on it, which the caller closes.
  llm_engine* NewEngine(uint32_t num_threads) {
    llm_engine_options options;
    llm_engine_options_init(&options);
    options.drive = LLM_DRIVE_MANUAL;
    options.num_threads = num_threads;
    options.kv_tokens = 128;
    options.max_step_tokens = 16;
    llm_engine* engine = nullptr;
    EXPECT_EQ(llm_engine_open(model_, &options, &engine), LLM_OK) << llm_last_error();
    return engine;
  }
  static std::vector<int32_t> SomeIds() {
    std::vector<int32_t> ids;
    for (int32_t id = 1; id < 40; ++id) ids.push_back(id * 7);
    return ids;
  }

  PackFolder folder_;
  llm_model_options options_;
  llm_model* model_ = nullptr;
};

}  // namespace llm
