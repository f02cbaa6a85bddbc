// Uses a GGUF file of any content in every way the engine does, and says what is inconsistent about
// what was opened.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "src/loader/gguf_reader.h"

namespace llm {

// Of a file that opened. Reads at most the first and last bytes of each tensor. Empty when all is
// well.
inline std::string WalkWeightSource(const WeightSource& source, uint64_t file_size) {
  const Metadata& metadata = source.metadata();
  for (absl::string_view key : metadata.Keys()) {
    if (!metadata.Has(key)) return "a listed key is not found";
    const int num_types = metadata.GetInt(key).ok() + metadata.GetFloat(key).ok() +
                          metadata.GetBool(key).ok() + metadata.GetString(key).ok() +
                          metadata.GetStrings(key).ok() + metadata.GetInts(key).ok() +
                          metadata.GetFloats(key).ok();
    if (num_types > 1) return "a value has two types";
    if (metadata.GetSmallInts(key).ok() && !metadata.GetInts(key).ok()) return "small, but none";
    if (const auto texts = metadata.GetStrings(key); texts.ok()) {
      const auto num_texts = static_cast<size_t>(std::distance(texts->begin(), texts->end()));
      if (num_texts != texts->size()) return "a list of another length";
    }
  }
  for (const TensorInfo& tensor : source.tensors()) {
    if (source.Find(tensor.name) != &tensor) return "a listed tensor is not found";
    const WeightFormatInfo& format = GetWeightFormat(tensor.format);
    uint64_t bytes = static_cast<uint64_t>(RowBytes(format, tensor.shape.back()));
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
      bytes *= static_cast<uint64_t>(tensor.shape[i]);
    }
    if (bytes != tensor.size_bytes) return "a tensor's size does not follow from its shape";
    if (bytes > file_size || tensor.file_offset > file_size - bytes) return "a tensor lies outside";
    const uint64_t block = static_cast<uint64_t>(format.block_bytes);
    std::vector<char> buffer(block);
    std::vector<float> values(static_cast<size_t>(format.block_size));
    for (uint64_t offset : {uint64_t{0}, bytes - block}) {
      if (!source.Read(tensor, offset, block, buffer.data()).ok()) return "a tensor is unreadable";
      format.decode(buffer.data(), format.block_size, values.data());
    }
    if (source.Read(tensor, bytes, 1, buffer.data()).ok()) return "a read beyond a tensor succeeds";
  }
  return "";
}

// Empty when the file opens and is consistent, or is refused with a message.
inline std::string WalkGguf(const void* data, uint64_t size) {
  absl::StatusOr<std::unique_ptr<WeightSource>> source =
      OpenGguf(MemoryModelFile(data, size, "memory"), LoaderLimits());
  if (source.ok()) return WalkWeightSource(**source, size);
  return source.status().message().empty() ? "refused without a message" : "";
}

}  // namespace llm
