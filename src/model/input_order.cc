// Orders come out of files: they are looked at once, when they are in memory.
#include "src/model/input_order.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tensor/host_copy.h"

namespace llm {
namespace {

struct Named {
  const char* name;
  const LinearWeight* linear;
};

std::string NameOf(int layer, const Named& named) {
  return absl::StrCat("tensor blk.", layer, ".", named.name, kOrderSuffix);
}

// Empty: the columns are in the inputs' order.
absl::StatusOr<absl::Span<const float>> OrderOf(const LinearWeight& linear, Device* device,
                                                std::vector<float>* copy) {
  if (linear.order == nullptr) return absl::Span<const float>();
  return OnHost(device, {linear.order, static_cast<size_t>(linear.weight.cols)}, copy);
}

absl::Status CheckOrder(int layer, const Named& named, Device* device) {
  std::vector<float> copy;
  LLM_ASSIGN_OR_RETURN(const absl::Span<const float> order, OrderOf(*named.linear, device, &copy));
  const auto inputs = static_cast<float>(named.linear->weight.cols);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= 0 && order[i] < inputs && order[i] == std::floor(order[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat(NameOf(layer, named), ": column ", i, " reads ",
                                                   order[i], ", there are ", order.size(),
                                                   " inputs"));
  }
  return absl::OkStatus();
}

absl::Status CheckSame(int layer, const Named& first, const Named& other, Device* device) {
  std::vector<float> first_copy, other_copy;
  LLM_ASSIGN_OR_RETURN(const auto a, OrderOf(*first.linear, device, &first_copy));
  LLM_ASSIGN_OR_RETURN(const auto b, OrderOf(*other.linear, device, &other_copy));
  if (a == b) return absl::OkStatus();
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

absl::Status CheckInputOrders(const Weights& weights, const ModelConfig& config, Device* device) {
  if (!config.input_orders) return absl::OkStatus();
  const TensorNames& names = config.names;
  for (int i = 0; i < static_cast<int>(weights.layers.size()); ++i) {
    const LayerWeights& layer = weights.layers[static_cast<size_t>(i)];
    const Named q = {names.q, &layer.q}, k = {names.k, &layer.k}, v = {names.v, &layer.v};
    const Named gate = {names.gate, &layer.gate}, up = {names.up, &layer.up};
    for (const Named& named :
         {q, k, v, Named{names.o, &layer.o}, gate, up, Named{names.down, &layer.down}}) {
      LLM_RETURN_IF_ERROR(CheckOrder(i, named, device));
    }
    LLM_RETURN_IF_ERROR(CheckSame(i, q, k, device));
    LLM_RETURN_IF_ERROR(CheckSame(i, q, v, device));
    LLM_RETURN_IF_ERROR(CheckSame(i, gate, up, device));
  }
  return absl::OkStatus();
}

}  // namespace llm
