// Orders come out of files: they are looked at once, when they are in memory.
#include "src/model/input_order.h"

#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

struct Named {
  const char* name;
  const LinearWeight* linear;
};

std::string NameOf(int layer, const Named& named) {
  return absl::StrCat("tensor blk.", layer, ".", named.name, kOrderSuffix);
}

absl::Status CheckOrder(int layer, const Named& named) {
  const LinearWeight& linear = *named.linear;
  if (linear.order == nullptr) return absl::OkStatus();
  const int64_t inputs = linear.weight.cols;
  for (int64_t i = 0; i < inputs; ++i) {
    const float input = linear.order[i];
    if (input >= 0 && input < static_cast<float>(inputs) && input == std::floor(input)) continue;
    return absl::InvalidArgumentError(absl::StrCat(NameOf(layer, named), ": column ", i, " reads ",
                                                   input, ", there are ", inputs, " inputs"));
  }
  return absl::OkStatus();
}

absl::Status CheckSame(int layer, const Named& first, const Named& other) {
  const float* a = first.linear->order;
  const float* b = other.linear->order;
  const auto bytes = static_cast<size_t>(first.linear->weight.cols) * sizeof(float);
  if (a == b || (a != nullptr && b != nullptr && std::memcmp(a, b, bytes) == 0)) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(NameOf(layer, other), ": is not that of ",
                                               first.name, ", which reads the same input"));
}

}  // namespace

bool HasInputOrders(const WeightSource& source) {
  for (const TensorInfo& tensor : source.tensors()) {
    if (absl::EndsWith(tensor.name, kOrderSuffix)) return true;
  }
  return false;
}

absl::Status CheckInputOrders(const Weights& weights, const ModelConfig& config) {
  const TensorNames& names = config.names;
  for (int i = 0; i < static_cast<int>(weights.layers.size()); ++i) {
    const LayerWeights& layer = weights.layers[static_cast<size_t>(i)];
    const Named q = {names.q, &layer.q}, k = {names.k, &layer.k}, v = {names.v, &layer.v};
    const Named gate = {names.gate, &layer.gate}, up = {names.up, &layer.up};
    for (const Named& named :
         {q, k, v, Named{names.o, &layer.o}, gate, up, Named{names.down, &layer.down}}) {
      LLM_RETURN_IF_ERROR(CheckOrder(i, named));
    }
    LLM_RETURN_IF_ERROR(CheckSame(i, q, k));
    LLM_RETURN_IF_ERROR(CheckSame(i, q, v));
    LLM_RETURN_IF_ERROR(CheckSame(i, gate, up));
  }
  return absl::OkStatus();
}

}  // namespace llm
