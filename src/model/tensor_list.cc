// One pass over the model names every tensor; prediction, checks, allocation and loading all follow
// this list.
#include "src/model/tensor_list.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr size_t kAlignment = 64;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

class Lister {
 public:
  Lister(const WeightSource& source, const ModelConfig& config, PackedBytesFn packed_bytes)
      : source_(source), config_(config), packed_bytes_(packed_bytes) {}

  absl::Status ListModel(Weights* weights);
  absl::Status RefuseUnknown() const;
  TensorList Take() { return std::move(list_); }

 private:
  absl::Status ListLayer(int index, LayerWeights* layer);
  absl::Status Matrix(const std::string& name, int64_t rows, int64_t cols, PackedWeight* matrix);
  absl::Status Vector(const std::string& name, int64_t size, const float** vector);
  absl::Status Linear(const std::string& name, int64_t rows, int64_t cols, LinearWeight* linear);
  absl::StatusOr<const TensorInfo*> Find(const std::string& name,
                                         const std::vector<int64_t>& shape);
  absl::Status Place(TensorSlot slot, size_t bytes);

  const WeightSource& source_;
  const ModelConfig& config_;
  const PackedBytesFn packed_bytes_;
  std::set<std::string> used_;  // names
  TensorList list_;
};

absl::Status Lister::ListModel(Weights* weights) {
  const TensorNames& names = config_.names;
  const auto name = [](const char* stem) { return absl::StrCat(stem, ".weight"); };
  LLM_RETURN_IF_ERROR(
      Matrix(name(names.embedding), config_.vocab_size, config_.hidden_size, &weights->embedding));
  weights->layers.resize(static_cast<size_t>(config_.num_layers));
  for (int i = 0; i < config_.num_layers; ++i) {
    LLM_RETURN_IF_ERROR(ListLayer(i, &weights->layers[static_cast<size_t>(i)]));
  }
  LLM_RETURN_IF_ERROR(Vector(name(names.output_norm), config_.hidden_size, &weights->output_norm));
  if (config_.rope_factors) {
    LLM_RETURN_IF_ERROR(
        Vector(name(names.rope_factors), config_.rope_dim / 2, &weights->rope_factors));
  }
  if (config_.tied_embeddings) return absl::OkStatus();
  return Matrix(name(names.head), config_.vocab_size, config_.hidden_size, &weights->head);
}

absl::Status Lister::ListLayer(int index, LayerWeights* layer) {
  const TensorNames& names = config_.names;
  const int64_t hidden = config_.hidden_size;
  const int64_t q = config_.q_size();
  const int64_t kv = config_.kv_size();
  const int64_t ffn = config_.ffn_size;
  const auto stem = [index](const char* name) { return absl::StrCat("blk.", index, ".", name); };
  const auto norm = [&](const char* name, int64_t size, const float** vector) {
    return Vector(stem(name) + ".weight", size, vector);
  };
  LLM_RETURN_IF_ERROR(norm(names.attention_norm, hidden, &layer->attention_norm));
  LLM_RETURN_IF_ERROR(Linear(stem(names.q), q, hidden, &layer->q));
  LLM_RETURN_IF_ERROR(Linear(stem(names.k), kv, hidden, &layer->k));
  LLM_RETURN_IF_ERROR(Linear(stem(names.v), kv, hidden, &layer->v));
  LLM_RETURN_IF_ERROR(Linear(stem(names.o), hidden, q, &layer->o));
  if (config_.qk_norm) {
    LLM_RETURN_IF_ERROR(norm(names.q_norm, config_.head_dim, &layer->q_norm));
    LLM_RETURN_IF_ERROR(norm(names.k_norm, config_.head_dim, &layer->k_norm));
  }
  LLM_RETURN_IF_ERROR(norm(names.ffn_norm, hidden, &layer->ffn_norm));
  LLM_RETURN_IF_ERROR(Linear(stem(names.gate), ffn, hidden, &layer->gate));
  LLM_RETURN_IF_ERROR(Linear(stem(names.up), ffn, hidden, &layer->up));
  LLM_RETURN_IF_ERROR(Linear(stem(names.down), hidden, ffn, &layer->down));
  if (config_.post_norms) {
    LLM_RETURN_IF_ERROR(norm(names.post_attention_norm, hidden, &layer->post_attention_norm));
    LLM_RETURN_IF_ERROR(norm(names.post_ffn_norm, hidden, &layer->post_ffn_norm));
  }
  return absl::OkStatus();
}

absl::Status Lister::Linear(const std::string& name, int64_t rows, int64_t cols,
                            LinearWeight* linear) {
  LLM_RETURN_IF_ERROR(Matrix(name + ".weight", rows, cols, &linear->weight));
  const std::string bias = name + ".bias";
  if (!config_.may_have_biases || source_.Find(bias) == nullptr) return absl::OkStatus();
  return Vector(bias, rows, &linear->bias);
}

absl::Status Lister::Matrix(const std::string& name, int64_t rows, int64_t cols,
                            PackedWeight* matrix) {
  LLM_ASSIGN_OR_RETURN(const TensorInfo* tensor, Find(name, {rows, cols}));
  absl::StatusOr<size_t> bytes = packed_bytes_(tensor->format, rows, cols);
  if (!bytes.ok()) {
    return absl::Status(bytes.status().code(),
                        absl::StrCat("tensor ", name, ": ", bytes.status().message()));
  }
  *matrix = PackedWeight{.format = tensor->format, .rows = rows, .cols = cols, .data = nullptr};
  return Place({.tensor = tensor, .matrix = matrix}, *bytes);
}

absl::Status Lister::Vector(const std::string& name, int64_t size, const float** vector) {
  LLM_ASSIGN_OR_RETURN(const TensorInfo* tensor, Find(name, {size}));
  if (size % GetWeightFormat(tensor->format).block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", name, ": ", size,
                                                   " elements are no whole blocks of ",
                                                   GetWeightFormat(tensor->format).name));
  }
  return Place({.tensor = tensor, .vector = vector}, static_cast<size_t>(size) * sizeof(float));
}

absl::StatusOr<const TensorInfo*> Lister::Find(const std::string& name,
                                               const std::vector<int64_t>& shape) {
  const TensorInfo* tensor = source_.Find(name);
  if (tensor == nullptr) return absl::NotFoundError(absl::StrCat("tensor ", name, ": missing"));
  if (tensor->shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", name, ": expected ", ShapeText(shape),
                                                   ", file has ", ShapeText(tensor->shape)));
  }
  used_.insert(name);
  return tensor;
}

absl::Status Lister::Place(TensorSlot slot, size_t bytes) {
  slot.offset = list_.total_bytes;
  slot.size_bytes = bytes;
  const auto end = CheckedAdd(list_.total_bytes, bytes);
  if (!end.has_value() || *end > SIZE_MAX / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", slot.tensor->name, ": sizes overflow"));
  }
  list_.total_bytes = RoundUp(*end, kAlignment);
  list_.slots.push_back(slot);
  return absl::OkStatus();
}

absl::Status Lister::RefuseUnknown() const {
  for (const TensorInfo& tensor : source_.tensors()) {
    if (used_.count(tensor.name) == 0) {
      return absl::UnimplementedError(absl::StrCat(
          "tensor ", tensor.name, ": not used by architecture ", config_.architecture));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorList> ListTensors(const WeightSource& source, const ModelConfig& config,
                                       PackedBytesFn packed_bytes, Weights* weights) {
  Lister lister(source, config, packed_bytes);
  LLM_RETURN_IF_ERROR(lister.ListModel(weights));
  LLM_RETURN_IF_ERROR(lister.RefuseUnknown());
  return lister.Take();
}

}  // namespace llm
