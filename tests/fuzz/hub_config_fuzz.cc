// Any bytes as config.json: GGUF metadata that a model's config is read from, or refused with a
// message.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/loader/gguf_reader.h"
#include "src/model/hub_keys.h"
#include "src/model/model_config.h"

namespace llm {
namespace {

std::string Walk(absl::string_view text) {
  const auto document = JsonDocument::Parse(text);
  if (!document.ok()) return document.status().message().empty() ? "no message" : "";
  GgufWriter writer;
  const auto header = WriteHubKeys(*document, &writer);
  if (!header.ok()) return header.status().message().empty() ? "no message" : "";
  writer.AddTensor("token_embd.weight", WeightFormat::kF32, {8, 8}, 0);
  std::string file = writer.Finish();
  file.resize(file.size() + 8 * 8 * sizeof(float));
  const auto source = OpenGguf(MemoryModelFile(file.data(), file.size(), "memory"), {});
  if (!source.ok()) return "what was written cannot be read: " + source.status().ToString();
  const auto config = ReadModelConfig(**source);
  if (config.ok()) return config->layers.empty() ? "a model without layers" : "";
  const absl::Status explained = header->names.Explain(config.status());
  return explained.message().empty() ? "no message" : "";
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = llm::Walk(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!fault.empty()) {
    std::fprintf(stderr, "hub_config_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
