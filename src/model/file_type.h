// general.file_type: what GGUF files say of the format that most of their weights are in.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kernels/quant/weight_format.h"
#include "src/loader/file_source.h"

namespace llm {

// How many weights of the layers are in which format.
class WeightCount {
 public:
  void Add(WeightFormat format, int64_t weights) { counts_[format] += weights; }
  // That of the most of them; F32 when there are none.
  WeightFormat Most() const;

 private:
  std::map<WeightFormat, int64_t> counts_;
};

struct GgufValues {
  std::string bytes;  // keys with their values, as a header has them
  uint64_t count = 0;
};

// The metadata of `contents` for a file whose weights were mostly in one format and are now in
// another: without its general.file_type, where ggml has no number for that.
GgufValues WithFileType(const GgufContents& contents, WeightFormat was, WeightFormat is);

}  // namespace llm
