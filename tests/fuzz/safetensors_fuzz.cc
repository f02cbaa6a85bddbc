// Any bytes as a safetensors file, or as an index and the file that it names: listed, or refused
// with a message.
//
// The first byte says which. Even: the rest is one file. Odd: two bytes of length, that much JSON
// as model.safetensors.index.json, and the rest as one.safetensors, in a folder of this process.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/loader/model_directory.h"
#include "src/loader/safetensors_header.h"
#include "src/loader/safetensors_set.h"

namespace llm {
namespace {

std::string CheckTensor(const SafeTensor& tensor) {
  uint64_t bytes = SafeTypeBytes(tensor.type);
  for (const int64_t size : tensor.shape) bytes *= static_cast<uint64_t>(size);
  if (tensor.shape.empty() || bytes != tensor.size_bytes) return "a size that is not the shape's";
  char last = 0;
  if (!tensor.file->Read(tensor.offset + tensor.size_bytes - 1, 1, &last).ok()) {
    return "a tensor lies outside its file";
  }
  return "";
}

std::string WalkFile(const std::string& bytes) {
  const auto file = MemoryModelFile(bytes.data(), bytes.size(), "memory");
  const auto tensors = ReadSafetensorsHeader(*file, LoaderLimits());
  if (!tensors.ok()) return tensors.status().message().empty() ? "refused without a message" : "";
  for (const SafeTensor& tensor : *tensors) {
    if (std::string fault = CheckTensor(tensor); !fault.empty()) return fault;
  }
  return "";
}

const std::string& Folder() {
  static const std::string folder = [] {
    const auto path = std::filesystem::temp_directory_path() /
                      ("inlay_safetensors_fuzz_" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
    return path.string();
  }();
  return folder;
}

std::string WalkIndex(const std::string& bytes) {
  if (bytes.size() < 2) return "";
  const size_t length = static_cast<uint8_t>(bytes[0]) + 256u * static_cast<uint8_t>(bytes[1]);
  const std::string index = bytes.substr(2, length);
  std::ofstream(Folder() + "/model.safetensors.index.json", std::ios::binary) << index;
  std::ofstream(Folder() + "/one.safetensors", std::ios::binary) << bytes.substr(2 + index.size());
  const auto directory = ModelDirectory::Open(Folder());
  if (!directory.ok()) return "";
  const auto set = OpenSafetensors(*directory, LoaderLimits());
  if (!set.ok()) return set.status().message().empty() ? "refused without a message" : "";
  for (const auto& [name, tensor] : set->tensors) {
    if (name != tensor.name) return "a tensor under another name";
    if (std::string fault = CheckTensor(tensor); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string fault = data[0] % 2 == 0 ? llm::WalkFile(bytes) : llm::WalkIndex(bytes);
  if (!fault.empty()) {
    std::fprintf(stderr, "safetensors_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
