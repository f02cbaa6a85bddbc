// One pass over the model names every tensor; prediction, checks, allocation and loading all follow
// this list.
#include "src/model/tensor_list.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/model/input_order.h"

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
  absl::Status ListAttention(int index, LayerWeights* layer);
  absl::Status ListLatent(int index, LayerWeights* layer);
  absl::Status ListFeedForward(int index, LayerWeights* layer);
  absl::Status ListExperts(int index, ExpertsWeights* experts);
  absl::Status Norm(const std::string& stem, int64_t size, const float** vector) {
    return Vector(stem + ".weight", {size}, vector);
  }
  absl::Status Matrix(const std::string& name, const std::vector<int64_t>& shape,
                      PackedWeight* matrix);
  absl::Status Vector(const std::string& name, const std::vector<int64_t>& shape,
                      const float** vector);
  absl::Status Linear(const std::string& stem, int64_t rows, int64_t cols, LinearWeight* linear);
  // One whose columns may be in an order of their own.
  absl::Status Ordered(const std::string& stem, int64_t rows, int64_t cols, LinearWeight* linear);
  absl::Status Experts(const std::string& stem, int64_t count, int64_t rows, int64_t cols,
                       ExpertWeight* experts);
  absl::Status OrderedExperts(const std::string& stem, int64_t count, int64_t rows, int64_t cols,
                              ExpertWeight* experts);
  absl::Status Fused(const std::string& stem, int64_t cols, std::vector<LinearWeight*> parts,
                     std::vector<int64_t> rows, PackedWeight* whole);
  bool Has(const std::string& name) const { return source_.Find(name) != nullptr; }
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
  LLM_RETURN_IF_ERROR(Matrix(name(names.embedding), {config_.vocab_size, config_.hidden_size},
                             &weights->embedding));
  weights->layers.resize(static_cast<size_t>(config_.num_layers));
  for (int i = 0; i < config_.num_layers; ++i) {
    LLM_RETURN_IF_ERROR(ListLayer(i, &weights->layers[static_cast<size_t>(i)]));
  }
  LLM_RETURN_IF_ERROR(Norm(names.output_norm, config_.hidden_size, &weights->output_norm));
  if (config_.rope_factors) {
    LLM_RETURN_IF_ERROR(Norm(names.rope_factors, config_.rope_dim / 2, &weights->rope_factors));
  }
  if (config_.long_rope_above > 0) {
    LLM_RETURN_IF_ERROR(
        Norm(names.short_rope_factors, config_.rope_dim / 2, &weights->short_rope_factors));
    LLM_RETURN_IF_ERROR(
        Norm(names.long_rope_factors, config_.rope_dim / 2, &weights->long_rope_factors));
  }
  if (config_.tied_embeddings) return absl::OkStatus();
  return Matrix(name(names.head), {config_.vocab_size, config_.hidden_size}, &weights->head);
}

std::string Stem(int layer, const char* name) { return absl::StrCat("blk.", layer, ".", name); }

absl::Status Lister::ListLayer(int index, LayerWeights* layer) {
  const TensorNames& names = config_.names;
  const int64_t hidden = config_.hidden_size;
  LLM_RETURN_IF_ERROR(Norm(Stem(index, names.attention_norm), hidden, &layer->attention_norm));
  LLM_RETURN_IF_ERROR(config_.latent.rank > 0 ? ListLatent(index, layer)
                                              : ListAttention(index, layer));
  LLM_RETURN_IF_ERROR(Norm(Stem(index, names.ffn_norm), hidden, &layer->ffn_norm));
  LLM_RETURN_IF_ERROR(config_.layers[static_cast<size_t>(index)].experts
                          ? ListExperts(index, &layer->experts)
                          : ListFeedForward(index, layer));
  if (!config_.post_norms) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(
      Norm(Stem(index, names.post_attention_norm), hidden, &layer->post_attention_norm));
  return Norm(Stem(index, names.post_ffn_norm), hidden, &layer->post_ffn_norm);
}

absl::Status Lister::ListAttention(int index, LayerWeights* layer) {
  const TensorNames& names = config_.names;
  const int64_t hidden = config_.hidden_size;
  const int64_t q = config_.q_size();
  const int64_t kv = config_.kv_size();
  if (Has(Stem(index, names.qkv) + ".weight")) {
    LLM_RETURN_IF_ERROR(Fused(Stem(index, names.qkv), hidden, {&layer->q, &layer->k, &layer->v},
                              {q, kv, kv}, &layer->fused_qkv));
  } else {
    LLM_RETURN_IF_ERROR(Ordered(Stem(index, names.q), q, hidden, &layer->q));
    LLM_RETURN_IF_ERROR(Ordered(Stem(index, names.k), kv, hidden, &layer->k));
    LLM_RETURN_IF_ERROR(Ordered(Stem(index, names.v), kv, hidden, &layer->v));
  }
  LLM_RETURN_IF_ERROR(Ordered(Stem(index, names.o), hidden, q, &layer->o));
  if (config_.attention_sinks) {
    LLM_RETURN_IF_ERROR(Norm(Stem(index, names.sinks), config_.num_heads, &layer->sinks));
  }
  if (!config_.qk_norm) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(Norm(Stem(index, names.q_norm), config_.head_dim, &layer->q_norm));
  return Norm(Stem(index, names.k_norm), config_.head_dim, &layer->k_norm);
}

absl::Status Lister::ListLatent(int index, LayerWeights* layer) {
  const TensorNames& names = config_.names;
  const LatentConfig& latent = config_.latent;
  const int64_t hidden = config_.hidden_size;
  const int64_t heads = config_.num_heads;
  const int64_t q = heads * (latent.key_dim + config_.rope_dim);
  if (latent.query_rank > 0) {
    LLM_RETURN_IF_ERROR(Linear(Stem(index, names.q_a), latent.query_rank, hidden, &layer->q_a));
    LLM_RETURN_IF_ERROR(Norm(Stem(index, names.q_a_norm), latent.query_rank, &layer->q_a_norm));
    LLM_RETURN_IF_ERROR(Linear(Stem(index, names.q_b), q, latent.query_rank, &layer->q));
  } else {
    LLM_RETURN_IF_ERROR(Linear(Stem(index, names.q), q, hidden, &layer->q));
  }
  LLM_RETURN_IF_ERROR(
      Linear(Stem(index, names.kv_a), latent.rank + config_.rope_dim, hidden, &layer->kv_a));
  LLM_RETURN_IF_ERROR(Norm(Stem(index, names.kv_a_norm), latent.rank, &layer->kv_a_norm));
  LLM_RETURN_IF_ERROR(
      Experts(Stem(index, names.k_b), heads, latent.rank, latent.key_dim, &layer->k_b));
  LLM_RETURN_IF_ERROR(
      Experts(Stem(index, names.v_b), heads, latent.value_dim, latent.rank, &layer->v_b));
  return Linear(Stem(index, names.o), hidden, heads * latent.value_dim, &layer->o);
}

absl::Status Lister::ListFeedForward(int index, LayerWeights* layer) {
  const TensorNames& names = config_.names;
  const int64_t hidden = config_.hidden_size;
  const int64_t ffn = config_.ffn_size;
  if (config_.fused_gate_up) {
    LLM_RETURN_IF_ERROR(Fused(Stem(index, names.up), hidden, {&layer->gate, &layer->up}, {ffn, ffn},
                              &layer->fused_gate_up));
  } else {
    LLM_RETURN_IF_ERROR(Ordered(Stem(index, names.gate), ffn, hidden, &layer->gate));
    LLM_RETURN_IF_ERROR(Ordered(Stem(index, names.up), ffn, hidden, &layer->up));
  }
  return Ordered(Stem(index, names.down), hidden, ffn, &layer->down);
}

absl::Status Lister::ListExperts(int index, ExpertsWeights* experts) {
  const TensorNames& names = config_.names;
  const int64_t hidden = config_.hidden_size;
  const int64_t count = config_.experts.router.num_experts;
  const int64_t ffn = config_.experts.ffn_size;
  const int64_t shared = config_.experts.shared_ffn_size;
  LLM_RETURN_IF_ERROR(Linear(Stem(index, names.router), count, hidden, &experts->router));
  const std::string bias = Stem(index, names.selection_bias) + ".bias";
  if (Has(bias)) LLM_RETURN_IF_ERROR(Vector(bias, {count}, &experts->selection_bias));
  LLM_RETURN_IF_ERROR(
      OrderedExperts(Stem(index, names.expert_gate), count, ffn, hidden, &experts->gate));
  LLM_RETURN_IF_ERROR(
      OrderedExperts(Stem(index, names.expert_up), count, ffn, hidden, &experts->up));
  LLM_RETURN_IF_ERROR(
      OrderedExperts(Stem(index, names.expert_down), count, hidden, ffn, &experts->down));
  if (shared == 0) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(
      Ordered(Stem(index, names.shared_gate), shared, hidden, &experts->shared_gate));
  LLM_RETURN_IF_ERROR(Ordered(Stem(index, names.shared_up), shared, hidden, &experts->shared_up));
  return Ordered(Stem(index, names.shared_down), hidden, shared, &experts->shared_down);
}

absl::Status Lister::Linear(const std::string& stem, int64_t rows, int64_t cols,
                            LinearWeight* linear) {
  LLM_RETURN_IF_ERROR(Matrix(stem + ".weight", {rows, cols}, &linear->weight));
  if (!config_.may_have_biases || !Has(stem + ".bias")) return absl::OkStatus();
  return Vector(stem + ".bias", {rows}, &linear->bias);
}

absl::Status Lister::Ordered(const std::string& stem, int64_t rows, int64_t cols,
                             LinearWeight* linear) {
  LLM_RETURN_IF_ERROR(Linear(stem, rows, cols, linear));
  if (!Has(stem + kOrderSuffix)) return absl::OkStatus();
  return Vector(stem + kOrderSuffix, {cols}, &linear->order);
}

// Each expert begins with a tile of its own, so that it is a packed weight in itself.
absl::Status Lister::Experts(const std::string& stem, int64_t count, int64_t rows, int64_t cols,
                             ExpertWeight* experts) {
  if (rows % kPackTileRows != 0) {
    return absl::UnimplementedError(absl::StrCat("tensor ", stem, ".weight: experts of ", rows,
                                                 " rows, no multiple of ", kPackTileRows));
  }
  LLM_RETURN_IF_ERROR(Matrix(stem + ".weight", {count, rows, cols}, &experts->weight));
  if (!config_.may_have_biases || !Has(stem + ".bias")) return absl::OkStatus();
  return Vector(stem + ".bias", {count, rows}, &experts->bias);
}

absl::Status Lister::OrderedExperts(const std::string& stem, int64_t count, int64_t rows,
                                    int64_t cols, ExpertWeight* experts) {
  LLM_RETURN_IF_ERROR(Experts(stem, count, rows, cols, experts));
  if (!Has(stem + kOrderSuffix)) return absl::OkStatus();
  return Vector(stem + kOrderSuffix, {count, cols}, &experts->order);
}

absl::Status Lister::Fused(const std::string& stem, int64_t cols, std::vector<LinearWeight*> parts,
                           std::vector<int64_t> rows, PackedWeight* whole) {
  int64_t total = 0;
  for (const int64_t count : rows) total += count;
  const std::string name = stem + ".weight";
  LLM_RETURN_IF_ERROR(Matrix(name, {total, cols}, whole));
  int64_t begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (begin % kPackTileRows != 0) {
      return absl::UnimplementedError(absl::StrCat("tensor ", name, ": a part begins at row ",
                                                   begin, ", no multiple of ", kPackTileRows));
    }
    parts[i]->weight = {.format = whole->format, .rows = rows[i], .cols = cols, .data = nullptr};
    LLM_ASSIGN_OR_RETURN(const size_t offset, packed_bytes_(whole->format, begin, cols));
    list_.slices.push_back({.whole = whole, .part = &parts[i]->weight, .offset = offset});
    begin += rows[i];
  }
  if (!Has(stem + kOrderSuffix)) return absl::OkStatus();
  return Vector(stem + kOrderSuffix, {cols}, &parts[0]->order);
}

// The last dimension are the columns; the others together count rows.
absl::Status Lister::Matrix(const std::string& name, const std::vector<int64_t>& shape,
                            PackedWeight* matrix) {
  LLM_ASSIGN_OR_RETURN(const TensorInfo* tensor, Find(name, shape));
  const int64_t cols = shape.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  absl::StatusOr<size_t> bytes = packed_bytes_(tensor->format, rows, cols);
  if (!bytes.ok()) {
    return absl::Status(bytes.status().code(),
                        absl::StrCat("tensor ", name, ": ", bytes.status().message()));
  }
  *matrix = PackedWeight{.format = tensor->format, .rows = rows, .cols = cols, .data = nullptr};
  return Place({.tensor = tensor, .matrix = matrix}, *bytes);
}

absl::Status Lister::Vector(const std::string& name, const std::vector<int64_t>& shape,
                            const float** vector) {
  LLM_ASSIGN_OR_RETURN(const TensorInfo* tensor, Find(name, shape));
  int64_t size = 1;
  for (const int64_t count : shape) size *= count;
  if (shape.back() % GetWeightFormat(tensor->format).block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", name, ": ", shape.back(),
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
