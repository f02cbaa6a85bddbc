// What a model file holds, read from its header.
#pragma once

#include <cstdint>
#include <inlay/llm.hpp>
#include <string>
#include <vector>

#include "common/open.h"

namespace inspect {

struct TypeShare {
  std::string type;
  uint64_t tensors = 0, bytes = 0;
};

struct Contents {
  llm_model_info info;  // lives as long as the model, as do the strings below
  std::vector<llm_tensor_info> tensors;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  std::vector<TypeShare> types;  // most bytes first
  uint64_t tensor_bytes = 0;

  // Empty where the file has no such key.
  std::string_view Value(std::string_view key) const;
};

Contents ReadContents(const inlay::Model& model);

std::string ContentsText(const Contents& contents, bool every_tensor);
// Members of an object, without its braces.
std::string ContentsJson(const Contents& contents);

}  // namespace inspect
