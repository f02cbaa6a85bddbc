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
  const float* order;  // [count, inputs] or null
  int64_t inputs;
  int64_t count;  // experts, or 1
};

Named Of(const char* name, const LinearWeight& linear) {
  return {name, linear.order, linear.weight.cols, 1};
}

std::string NameOf(int layer, const Named& named) {
  return absl::StrCat("tensor blk.", layer, ".", named.name, kOrderSuffix);
}

// Empty: the columns are in the inputs' order.
absl::StatusOr<absl::Span<const float>> OrderOf(const Named& named, Device* device,
                                                std::vector<float>* copy) {
  if (named.order == nullptr) return absl::Span<const float>();
  return OnHost(device, {named.order, static_cast<size_t>(named.count * named.inputs)}, copy);
}

absl::Status CheckOrder(int layer, const Named& named, Device* device) {
  std::vector<float> copy;
  LLM_ASSIGN_OR_RETURN(const absl::Span<const float> order, OrderOf(named, device, &copy));
  const auto inputs = static_cast<size_t>(named.inputs);
  for (size_t i = 0; i < order.size(); ++i) {
    const float input = order[i];
    if (input >= 0 && input < static_cast<float>(inputs) && input == std::floor(input)) continue;
    return absl::InvalidArgumentError(absl::StrCat(NameOf(layer, named), ": column ", i % inputs,
                                                   " reads ", input, ", there are ", inputs,
                                                   " inputs"));
  }
  return absl::OkStatus();
}

absl::Status CheckSame(int layer, const Named& first, const Named& other, Device* device) {
  std::vector<float> first_copy, other_copy;
  LLM_ASSIGN_OR_RETURN(const auto a, OrderOf(first, device, &first_copy));
  LLM_ASSIGN_OR_RETURN(const auto b, OrderOf(other, device, &other_copy));
  if (a == b) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(NameOf(layer, other), ": is not that of ",
                                               first.name, ", which reads the same input"));
}

// What reads one input.
struct Reader {
  std::vector<Named> weights;
  bool fused = false;  // the first one's order is that of all
};

absl::Status CheckReader(int layer, const Reader& reader, Device* device) {
  for (const Named& named : reader.weights) {
    LLM_RETURN_IF_ERROR(CheckOrder(layer, named, device));
    if (!reader.fused) LLM_RETURN_IF_ERROR(CheckSame(layer, reader.weights[0], named, device));
  }
  return absl::OkStatus();
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
  const int64_t num_experts = config.experts.router.num_experts;
  const auto of_experts = [&](const char* name, const ExpertWeight& experts) {
    return Named{name, experts.order, experts.weight.cols, num_experts};
  };
  for (int i = 0; i < static_cast<int>(weights.layers.size()); ++i) {
    const LayerWeights& layer = weights.layers[static_cast<size_t>(i)];
    const ExpertsWeights& experts = layer.experts;
    const Reader readers[] = {
        {{Of(names.q, layer.q), Of(names.k, layer.k), Of(names.v, layer.v)},
         layer.fused_qkv.rows > 0},
        {{Of(names.o, layer.o)}},
        {{Of(names.gate, layer.gate), Of(names.up, layer.up)}, layer.fused_gate_up.rows > 0},
        {{Of(names.down, layer.down)}},
        {{of_experts(names.expert_gate, experts.gate), of_experts(names.expert_up, experts.up)}},
        {{of_experts(names.expert_down, experts.down)}},
        {{Of(names.shared_gate, experts.shared_gate), Of(names.shared_up, experts.shared_up)}},
        {{Of(names.shared_down, experts.shared_down)}},
    };
    for (const Reader& reader : readers) LLM_RETURN_IF_ERROR(CheckReader(i, reader, device));
  }
  return absl::OkStatus();
}

}  // namespace llm
