// Inputs of a linear layer that are not in the order of their groups (GPTQ's desc_act): the columns
// of the weight are sorted by group, and the layer's input is put into that order before it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/loader/composed_file.h"
#include "src/loader/safetensors_header.h"

namespace llm {

// `tensor`: the group of each of `inputs`. Whether they ascend. INVALID_ARGUMENT for another shape
// or a group that does not exist; UNIMPLEMENTED for groups of different sizes. REQUIRES: inputs is
// a multiple of groups.
absl::StatusOr<bool> CheckGroupsOfInputs(const SafeTensor& tensor, int64_t inputs, int64_t groups);

// The inputs, those of group 0 first, each group's in their own order. REQUIRES: the tensor passed
// that check.
absl::StatusOr<std::vector<int32_t>> OrderOfInputs(const SafeTensor& tensor, int64_t groups);

// The same as the floats of a tensor [inputs].
std::shared_ptr<const DerivedBytes> InputOrder(const SafeTensor& tensor, int64_t groups);
// 0, 1, 2, ...: of an expert whose neighbours have another order.
std::shared_ptr<const DerivedBytes> NaturalOrder(int64_t inputs);

}  // namespace llm
