// What a model file holds, kept as text for tools after the file is closed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/loader/weight_source.h"

namespace llm {

struct ListedTensor {
  std::string name;
  absl::string_view type;  // static
  int num_dims = 0;
  std::array<uint64_t, 8> shape = {};  // [num_dims], then zeros
  uint64_t file_offset = 0;
  uint64_t size_bytes = 0;
};

struct ListedMetadata {
  std::string key;
  std::string value;  // as llm_model_metadata says
};

// In the order of the file. Names, keys and values are valid UTF-8, whatever the file has.
struct ModelListing {
  std::vector<ListedTensor> tensors;
  std::vector<ListedMetadata> metadata;
};

ModelListing ListModel(const WeightSource& source);

}  // namespace llm
