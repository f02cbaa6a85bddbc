// Any config.json with any header of model.safetensors: tensors as GGUF has them, all of whose
// bytes can be read or are refused with a message.
//
// The input is three texts with zero bytes between them: config.json, the header, and what the data
// repeats up to the length that the header asks for.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "src/loader/safetensors_header.h"
#include "src/loader/safetensors_set.h"
#include "src/model/hub_keys.h"
#include "src/model/hub_tensors.h"

namespace llm {
namespace {

constexpr int64_t kMaxDataBytes = 1 << 18;
constexpr uint64_t kMaxReadBytes = 1 << 20;

// A whole file: data for the largest offset that some tensor states.
std::string Complete(absl::string_view header, absl::string_view pattern) {
  int64_t end = 0;
  const auto document = JsonDocument::Parse(header);
  for (JsonValue v = document.ok() ? document->root().first() : JsonValue(); v.exists();
       v = v.next()) {
    const auto offset = v.Find("data_offsets").first().next().GetInt();
    if (offset.ok()) end = std::max(end, std::min(*offset, kMaxDataBytes));
  }
  const auto size = static_cast<uint64_t>(header.size());
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file.append(header.data(), header.size());
  const size_t begin = file.size();
  file.resize(begin + static_cast<size_t>(end));
  for (size_t i = 0; i < static_cast<size_t>(end) && !pattern.empty(); ++i) {
    file[begin + i] = pattern[i % pattern.size()];
  }
  return file;
}

std::string ReadPart(const FilePart& part) {
  const uint64_t size = std::min(part.size_bytes, kMaxReadBytes);
  std::string bytes(static_cast<size_t>(size), '\0');
  // From the start, and all but the first and last byte, which cuts rows.
  for (const uint64_t at : {uint64_t{0}, std::min<uint64_t>(1, size)}) {
    const uint64_t count = size - std::min(size, 2 * at);
    const absl::Status read = part.derived != nullptr
                                  ? part.derived->Read(at, count, bytes.data())
                                  : part.file->Read(part.offset + at, count, bytes.data());
    if (!read.ok() && read.message().empty()) return "refused without a message";
  }
  return "";
}

std::string Walk(absl::string_view input) {
  const size_t first = std::min(input.find('\0'), input.size());
  const absl::string_view rest = input.substr(std::min(first + 1, input.size()));
  const size_t second = std::min(rest.find('\0'), rest.size());
  const auto config = JsonDocument::Parse(input.substr(0, first));
  if (!config.ok()) return "";
  GgufWriter writer;
  const auto header = WriteHubKeys(*config, &writer);
  if (!header.ok()) return "";
  const std::string bytes =
      Complete(rest.substr(0, second), rest.substr(std::min(second + 1, rest.size())));
  SafetensorsSet set;
  set.files.push_back(MemoryModelFile(bytes.data(), bytes.size(), "memory"));
  const auto tensors = ReadSafetensorsHeader(*set.files[0], LoaderLimits());
  if (!tensors.ok()) return "";
  for (const SafeTensor& tensor : *tensors) set.tensors.emplace(tensor.name, tensor);
  const auto mapped = MapHubTensors(*header->model, header->extras, set);
  if (!mapped.ok()) return mapped.status().message().empty() ? "refused without a message" : "";
  for (const HubTensorParts& tensor : *mapped) {
    uint64_t end = 0;
    for (const FilePart& part : tensor.parts) {
      if (part.begin != end) return "parts with a gap";
      end += part.size_bytes;
      if (std::string fault = ReadPart(part); !fault.empty()) return fault;
    }
    if (end != tensor.size_bytes) return "parts of another size";
  }
  return "";
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = llm::Walk(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!fault.empty()) {
    std::fprintf(stderr, "hub_tensors_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
