// A checkpoint in low bits whose config and tensors a test changes.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/golden/directory_golden.h"
#include "tests/support/hub_directory.h"

namespace llm {

struct HeldTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

// A copy of a checkpoint of the shared data that a test spoils.
class Checkpoint {
 public:
  explicit Checkpoint(const std::string& name) {
    namespace fs = std::filesystem;
    const std::string from = std::string(INLAY_SHARED_DATA "/quant/") + name;
    path_ = testing::TempDir() + "/quantized_corruption_" + std::to_string(getpid()) + "_" + name;
    fs::remove_all(path_);
    if (!FileExists(from + "/model.safetensors")) return;
    fs::copy(from, path_);
    config = ReadJson(path_ + "/config.json");
    std::ifstream file(path_ + "/model.safetensors", std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    uint64_t size;
    std::memcpy(&size, bytes.data(), sizeof(size));
    header = nlohmann::json::parse(bytes.substr(sizeof(size), size));
    data = bytes.substr(sizeof(size) + size);
  }
  ~Checkpoint() { std::filesystem::remove_all(path_); }

  bool exists() const { return !header.empty(); }
  char* Bytes(const std::string& tensor) {
    return data.data() + header.at(tensor).at("data_offsets").at(0).get<size_t>();
  }
  // Its tensors with their bytes, and what they become.
  std::map<std::string, HeldTensor> Take() const {
    std::map<std::string, HeldTensor> tensors;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
      tensors[name] = {entry["dtype"], entry["shape"], data.substr(begin, end - begin)};
    }
    return tensors;
  }
  void Put(const std::map<std::string, HeldTensor>& tensors) {
    header.clear();
    data.clear();
    for (const auto& [name, tensor] : tensors) {
      const size_t begin = data.size();
      data += tensor.bytes;
      header[name] = {
          {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
    }
  }
  absl::StatusOr<std::unique_ptr<WeightSource>> Open() const {
    std::ofstream(path_ + "/config.json") << config.dump();
    std::ofstream file(path_ + "/model.safetensors", std::ios::binary);
    file << SafetensorsBytes(header, data);
    file.close();
    absl::StatusOr<std::unique_ptr<ModelFile>> opened = OpenModelPath(path_, {});
    if (!opened.ok()) return opened.status();
    return OpenGguf(*std::move(opened), {});
  }
  // What loading all of it answers.
  absl::Status Load() const {
    const absl::StatusOr<std::unique_ptr<WeightSource>> source = Open();
    if (!source.ok()) return source.status();
    return ModelHarness::Create(**source, {.kernels = BackendUnderTest()}).status();
  }

  nlohmann::json config;
  nlohmann::json header;
  std::string data;

 private:
  std::string path_;
};

}  // namespace llm
