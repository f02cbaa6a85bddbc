// Lists through llm_model_tensor and llm_model_metadata.
#include "inspect/contents.h"

#include <algorithm>

#include "common/text.h"

namespace inspect {
namespace {

using tools::Format;
using tools::JsonString;

std::string ToString(llm_string text) { return std::string(inlay::View(text)); }

std::string Shape(const llm_tensor_info& tensor) {
  std::string text = "[";
  for (uint32_t i = 0; i < tensor.num_dims; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  return text + "]";
}

// On one line, cut.
std::string OneLine(std::string_view value) {
  constexpr size_t kMaxBytes = 100;
  std::string text;
  for (const char c : value.substr(0, kMaxBytes))
    text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  if (value.size() > kMaxBytes) {
    while (!text.empty() && (text.back() & 0x80) != 0) text.pop_back();
    text += Format("... (%zu bytes)", value.size());
  }
  return text;
}

void CountTypes(Contents* contents) {
  for (const llm_tensor_info& tensor : contents->tensors) {
    const std::string type = ToString(tensor.type);
    auto share = std::find_if(contents->types.begin(), contents->types.end(),
                              [&](const TypeShare& known) { return known.type == type; });
    if (share == contents->types.end()) share = contents->types.insert(share, {type, 0, 0});
    ++share->tensors;
    share->bytes += tensor.size_bytes;
    contents->tensor_bytes += tensor.size_bytes;
  }
  std::sort(contents->types.begin(), contents->types.end(),
            [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
}

}  // namespace

std::string_view Contents::Value(std::string_view key) const {
  for (const auto& [known, value] : metadata)
    if (known == key) return value;
  return {};
}

Contents ReadContents(const inlay::Model& model) {
  Contents contents;
  contents.info = tools::ModelInfo(model);
  for (uint64_t i = 0; i < contents.info.num_tensors; ++i) {
    llm_tensor_info tensor;
    tools::Check(model.GetTensor(i, &tensor));
    contents.tensors.push_back(tensor);
  }
  for (uint64_t i = 0; i < contents.info.num_metadata; ++i) {
    std::string_view key, value;
    tools::Check(model.GetMetadata(i, &key, &value));
    contents.metadata.emplace_back(key, value);
  }
  CountTypes(&contents);
  return contents;
}

std::string ContentsText(const Contents& contents, bool every_tensor) {
  const llm_model_info& info = contents.info;
  std::string text =
      Format("%s: %s, %d layers, hidden size %d, vocabulary %d, context %d\n",
             ToString(info.name).c_str(), ToString(info.architecture).c_str(), info.num_layers,
             info.hidden_size, info.vocab_size, info.context_length);
  text += Format("tokenizer: %s %s, bos %d, eos %d; chat template: %s\n",
                 std::string(contents.Value("tokenizer.ggml.model")).c_str(),
                 std::string(contents.Value("tokenizer.ggml.pre")).c_str(), info.bos_id,
                 info.eos_id, info.has_chat_template != 0 ? "yes" : "no");
  text += Format("%zu tensors, %s:\n", contents.tensors.size(),
                 tools::Bytes(contents.tensor_bytes).c_str());
  for (const TypeShare& share : contents.types)
    text +=
        Format("  %-6s %5llu tensors %12s  %5.1f %%\n", share.type.c_str(),
               static_cast<unsigned long long>(share.tensors), tools::Bytes(share.bytes).c_str(),
               100 * static_cast<double>(share.bytes) /
                   static_cast<double>(std::max<uint64_t>(contents.tensor_bytes, 1)));
  if (every_tensor) {
    for (const llm_tensor_info& tensor : contents.tensors)
      text += Format("  %-32s %-6s %-18s %12s at %llu\n", ToString(tensor.name).c_str(),
                     ToString(tensor.type).c_str(), Shape(tensor).c_str(),
                     tools::Bytes(tensor.size_bytes).c_str(),
                     static_cast<unsigned long long>(tensor.file_offset));
  }
  text += Format("%zu metadata keys:\n", contents.metadata.size());
  for (const auto& [key, value] : contents.metadata)
    text += "  " + std::string(key) + " = " + OneLine(value) + "\n";
  return text;
}

std::string ContentsJson(const Contents& contents) {
  const llm_model_info& info = contents.info;
  std::string text = "\"name\": " + JsonString(ToString(info.name)) +
                     ", \"architecture\": " + JsonString(ToString(info.architecture));
  text += Format(
      ", \"num_layers\": %d, \"hidden_size\": %d, \"vocab_size\": %d, \"context_length\": %d, "
      "\"bos_id\": %d, \"eos_id\": %d, \"has_chat_template\": %s, \"metadata\": {",
      info.num_layers, info.hidden_size, info.vocab_size, info.context_length, info.bos_id,
      info.eos_id, info.has_chat_template != 0 ? "true" : "false");
  for (const auto& [key, value] : contents.metadata)
    text += (text.back() == '{' ? "" : ", ") + JsonString(std::string(key)) + ": " +
            JsonString(std::string(value));
  text += "}, \"tensors\": [";
  for (const llm_tensor_info& tensor : contents.tensors)
    text += (text.back() == '[' ? "{\"name\": " : ", {\"name\": ") +
            JsonString(ToString(tensor.name)) + ", \"type\": " + JsonString(ToString(tensor.type)) +
            ", \"shape\": " + Shape(tensor) +
            Format(", \"bytes\": %llu, \"offset\": %llu}",
                   static_cast<unsigned long long>(tensor.size_bytes),
                   static_cast<unsigned long long>(tensor.file_offset));
  return text + "]";
}

}  // namespace inspect
