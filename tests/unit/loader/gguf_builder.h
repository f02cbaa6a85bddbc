// Writes small GGUF files for tests, valid ones and ones that break a rule.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "src/loader/gguf_types.h"

namespace llm {

class GgufBuilder {
 public:
  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  template <typename T>
  GgufBuilder& Value(const std::string& key, GgufType type, T value) {
    BeginEntry(key, type);
    Append(&metadata_, value);
    return *this;
  }
  GgufBuilder& String(const std::string& key, const std::string& value) {
    BeginEntry(key, GgufType::kString);
    AppendString(&metadata_, value);
    return *this;
  }
  template <typename T>
  GgufBuilder& Array(const std::string& key, GgufType element_type, const std::vector<T>& values) {
    BeginArray(key, element_type, values.size());
    for (const T& value : values) Append(&metadata_, value);
    return *this;
  }
  GgufBuilder& Strings(const std::string& key, const std::vector<std::string>& values) {
    BeginArray(key, GgufType::kString, values.size());
    for (const std::string& value : values) AppendString(&metadata_, value);
    return *this;
  }
  // An array that claims `count` elements and has none.
  GgufBuilder& BeginArray(const std::string& key, GgufType element_type, uint64_t count) {
    BeginEntry(key, GgufType::kArray);
    Append(&metadata_, element_type);
    Append(&metadata_, count);
    return *this;
  }
  // `dims` fastest first, as in the file.
  GgufBuilder& Tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                      uint64_t offset) {
    AppendString(&tensors_, name);
    Append(&tensors_, static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) Append(&tensors_, dim);
    Append(&tensors_, type);
    Append(&tensors_, offset);
    ++num_tensors_;
    return *this;
  }
  GgufBuilder& ClaimTensors(uint64_t count) {
    num_tensors_ = count;
    return *this;
  }
  GgufBuilder& ClaimMetadata(uint64_t count) {
    num_metadata_ = count;
    return *this;
  }

  // The header, padded to `alignment`, and `data` behind it.
  std::string Build(const std::string& data = "", size_t alignment = 32) const {
    std::string file = "GGUF";
    Append(&file, version_);
    Append(&file, num_tensors_);
    Append(&file, num_metadata_);
    file += metadata_ + tensors_;
    if (!data.empty()) file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }

 private:
  template <typename T>
  static void Append(std::string* out, T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out->append(bytes, sizeof(T));
  }
  static void AppendString(std::string* out, const std::string& value) {
    Append(out, static_cast<uint64_t>(value.size()));
    *out += value;
  }
  void BeginEntry(const std::string& key, GgufType type) {
    AppendString(&metadata_, key);
    Append(&metadata_, type);
    ++num_metadata_;
  }

  uint32_t version_;
  uint64_t num_tensors_ = 0;
  uint64_t num_metadata_ = 0;
  std::string metadata_;
  std::string tensors_;
};

}  // namespace llm
