// Any bytes as tokenizer.json, up to a zero byte, and the rest as a text: refused with a message,
// or the same ids before and after it has been GGUF metadata.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/engine/tokenizer_from_gguf.h"
#include "src/engine/tokenizer_from_hub.h"
#include "src/engine/tokenizer_to_gguf.h"
#include "src/loader/gguf_reader.h"

namespace llm {
namespace {

using Ids = std::vector<int32_t>;

absl::StatusOr<Ids> Encode(const Tokenizer& tokenizer, absl::string_view text) {
  return tokenizer.Encode(text, {.add_special = true, .parse_special = true});
}

std::string Walk(absl::string_view input) {
  const size_t zero = input.find('\0');
  const absl::string_view text =
      zero == absl::string_view::npos ? absl::string_view("a b") : input.substr(zero + 1);
  const auto document = JsonDocument::Parse(input.substr(0, zero));
  const auto config = JsonDocument::Parse("{}");
  if (!document.ok() || !config.ok()) return "";
  const auto spec = TokenizerSpecFromHub(*document, *config);
  if (!spec.ok()) return spec.status().message().empty() ? "no message" : "";
  GgufWriter writer;
  WriteTokenizer(*spec, &writer);
  const std::string file = writer.Finish();
  const auto source = OpenGguf(MemoryModelFile(file.data(), file.size(), "memory"), {});
  if (!source.ok()) return "what was written cannot be read: " + source.status().ToString();
  const auto direct = Tokenizer::Create(*spec);
  const auto carried = TokenizerFromGguf((*source)->metadata());
  if (direct.ok() != carried.ok())
    return "only one of two tokenizers: " + carried.status().ToString();
  if (!direct.ok()) return direct.status().message().empty() ? "no message" : "";
  const auto ids = Encode(**direct, text);
  const auto again = Encode(**carried, text);
  if (ids.ok() != again.ok()) return "only one of two answers";
  if (!ids.ok()) return "";
  if (*ids != *again) return "other ids after GGUF";
  for (const int32_t id : *ids) {
    if (id < 0 || id >= (*direct)->vocab_size()) return "an id outside the vocabulary";
  }
  return (*direct)->Decode(*ids, true).ok() ? "" : "its own ids do not decode";
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = llm::Walk(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!fault.empty()) {
    std::fprintf(stderr, "hub_tokenizer_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
