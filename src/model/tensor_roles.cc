// The list of tensors says where in Weights each goes, and the place says what it is for.
#include "src/model/tensor_roles.h"

#include <map>

#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"
#include "src/model/tensor_list.h"
#include "src/model/weights.h"

namespace llm {
namespace {

// By place in Weights; matrices that are not there are linear layers.
std::map<const PackedWeight*, TensorRole> RolesOf(const Weights& weights) {
  std::map<const PackedWeight*, TensorRole> roles;
  roles[&weights.embedding] = TensorRole::kEmbedding;
  roles[&weights.head] = TensorRole::kHead;
  for (const LayerWeights& layer : weights.layers) {
    const ExpertsWeights& experts = layer.experts;
    roles[&experts.router.weight] = TensorRole::kOther;
    roles[&experts.gate.weight] = TensorRole::kExperts;
    roles[&experts.up.weight] = TensorRole::kExperts;
    roles[&experts.down.weight] = TensorRole::kExperts;
  }
  return roles;
}

}  // namespace

absl::StatusOr<std::vector<TensorRole>> FindTensorRoles(const WeightSource& source,
                                                        const ModelConfig& config) {
  Weights weights;
  LLM_ASSIGN_OR_RETURN(const TensorList list,
                       ListTensors(source, config, &ReferencePackedBytes, &weights));
  const std::map<const PackedWeight*, TensorRole> places = RolesOf(weights);
  std::vector<TensorRole> roles(source.tensors().size(), TensorRole::kOther);
  for (const TensorSlot& slot : list.slots) {
    if (slot.matrix == nullptr) continue;
    const auto place = places.find(slot.matrix);
    roles[static_cast<size_t>(slot.tensor - source.tensors().data())] =
        place == places.end() ? TensorRole::kLinear : place->second;
  }
  return roles;
}

}  // namespace llm
