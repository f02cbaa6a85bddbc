// A tiny Llama as a hub hands models out, written to a temporary directory by a test that then
// spoils it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace llm {

// A safetensors file: the header as JSON, then the data.
std::string SafetensorsBytes(const nlohmann::json& header, const std::string& data);

class HubDirectory {
 public:
  HubDirectory();
  ~HubDirectory();
  HubDirectory(const HubDirectory&) = delete;
  HubDirectory& operator=(const HubDirectory&) = delete;

  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& bytes) const;
  void WriteJson(const std::string& name, const nlohmann::json& json) const {
    Write(name, json.dump());
  }
  void Remove(const std::string& name) const;

  // What the directory is made of; a test changes it and calls Save.
  nlohmann::json config;
  nlohmann::json tokenizer;
  nlohmann::json tokenizer_config;
  nlohmann::json header;  // of model.safetensors
  std::string data;
  void Save() const;

 private:
  void AddTensor(const std::string& name, std::vector<int64_t> shape);

  std::string path_;
};

}  // namespace llm
