// Latent attention in one form for prefill and decode: each head's query is moved into the space of
// the latent vectors, which are keys and values of all heads, and each head's result back out of
// it.
#include "src/base/status_macros.h"
#include "src/model/decoder.h"

namespace llm {
namespace {

// One weight for each head.
ExpertOutput ToHeads(const ExpertWeight& heads, int64_t outputs, float* out) {
  return {.weight = heads.weight, .outputs = outputs, .bias = heads.bias, .out = out};
}

}  // namespace

absl::Status Decoder::Copy(const Block& from, const Block& to, int64_t outer, int64_t inner,
                           int64_t cols) {
  if (cols == 0) return absl::OkStatus();
  return kernels_.copy_blocks({.from = from.data,
                               .from_outer = from.outer,
                               .from_inner = from.inner,
                               .to = to.data,
                               .to_outer = to.outer,
                               .to_inner = to.inner,
                               .outer = outer,
                               .inner = inner,
                               .cols = cols},
                              Op("copy"));
}

// out[head, token] = heads' weight times in[head, token].
absl::Status Decoder::PerHead(const ExpertWeight& heads, float* in, int64_t inputs, int64_t outputs,
                              int64_t rows, const char* op) {
  const LatentWorkspace& ws = workspace_.latent;
  Activations activations;
  activations.values = in;
  activations.rows = config_.num_heads * rows;
  activations.cols = inputs;
  const ExpertOutput output[] = {ToHeads(heads, outputs, ws.heads_out)};
  return kernels_.expert_linear(ExpertsOf(activations, {}, output), Op(op));
}

absl::Status Decoder::LatentQkv(size_t layer, int64_t rows) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const LatentWorkspace& ws = workspace_.latent;
  const bool low_rank = config_.latent.query_rank > 0;
  const Activations normed = Select(workspace_.normed, forms_[layer].qkv, rows);
  const LinearOutput down[] = {
      To(weights.kv_a, ws.kv_a),
      low_rank ? To(weights.q_a, ws.q_a) : To(weights.q, ws.queries),
  };
  LLM_RETURN_IF_ERROR(kernels_.linear(LinearOf(normed, down), Op("qkv")));
  if (low_rank) {
    const Activations q_normed = Select(ws.q_normed, forms_[layer].latent_q, rows);
    LLM_RETURN_IF_ERROR(kernels_.rms_norm(
        {.input = ws.q_a, .weight = weights.q_a_norm, .eps = config_.norm_eps, .output = q_normed},
        Op("q_norm")));
    const LinearOutput up[] = {To(weights.q, ws.queries)};
    LLM_RETURN_IF_ERROR(kernels_.linear(LinearOf(q_normed, up), Op("q")));
  }
  LLM_RETURN_IF_ERROR(LatentQueries(weights, rows));
  return LatentKeys(weights, rows);
}

// [rotated, latent, zeros] for each head.
absl::Status Decoder::LatentQueries(const LayerWeights& weights, int64_t rows) {
  const LatentWorkspace& ws = workspace_.latent;
  const LatentConfig& latent = config_.latent;
  const int64_t heads = config_.num_heads;
  const int64_t rope = config_.rope_dim;
  const int64_t head_dim = config_.head_dim;
  const int64_t query_dim = latent.key_dim + rope;
  LLM_RETURN_IF_ERROR(Copy({ws.queries, heads * query_dim, query_dim},
                           {ws.heads_in, latent.key_dim, rows * latent.key_dim}, rows, heads,
                           latent.key_dim));
  LLM_RETURN_IF_ERROR(
      PerHead(weights.k_b, ws.heads_in, latent.key_dim, latent.rank, rows, "absorb_k"));
  float* q = workspace_.q;
  LLM_RETURN_IF_ERROR(Copy({ws.queries + latent.key_dim, heads * query_dim, query_dim},
                           {q, heads * head_dim, head_dim}, rows, heads, rope));
  LLM_RETURN_IF_ERROR(Copy({ws.heads_out, latent.rank, rows * latent.rank},
                           {q + rope, heads * head_dim, head_dim}, rows, heads, latent.rank));
  const int64_t used = rope + latent.rank;
  return Copy({}, {q + used, heads * head_dim, head_dim}, rows, heads, head_dim - used);
}

absl::Status Decoder::LatentKeys(const LayerWeights& weights, int64_t rows) {
  const LatentWorkspace& ws = workspace_.latent;
  const int64_t rank = config_.latent.rank;
  const int64_t rope = config_.rope_dim;
  const int64_t head_dim = config_.head_dim;
  const int64_t padding = head_dim - rope - rank;
  float* k = workspace_.k;
  float* v = workspace_.v;
  LLM_RETURN_IF_ERROR(Copy({ws.kv_a, rank + rope}, {ws.latent, rank}, rows, 1, rank));
  LLM_RETURN_IF_ERROR(
      kernels_.rms_norm({.input = ws.latent,
                         .weight = weights.kv_a_norm,
                         .eps = config_.norm_eps,
                         .output = {.values = ws.latent, .rows = rows, .cols = rank}},
                        Op("kv_norm")));
  LLM_RETURN_IF_ERROR(Copy({ws.kv_a + rank, rank + rope}, {k, head_dim}, rows, 1, rope));
  LLM_RETURN_IF_ERROR(Copy({}, {v, head_dim}, rows, 1, rope));
  for (float* row : {k, v}) {
    LLM_RETURN_IF_ERROR(Copy({ws.latent, rank}, {row + rope, head_dim}, rows, 1, rank));
    LLM_RETURN_IF_ERROR(Copy({}, {row + rope + rank, head_dim}, rows, 1, padding));
  }
  return absl::OkStatus();
}

absl::Status Decoder::LatentValues(size_t layer, int64_t rows) {
  const LatentWorkspace& ws = workspace_.latent;
  const int64_t heads = config_.num_heads;
  const int64_t rank = config_.latent.rank;
  const int64_t value_dim = config_.latent.value_dim;
  float* attended = workspace_.attended.values + config_.rope_dim;
  LLM_RETURN_IF_ERROR(Copy({attended, config_.q_size(), config_.head_dim},
                           {ws.heads_in, rank, rows * rank}, rows, heads, rank));
  LLM_RETURN_IF_ERROR(
      PerHead(model_.weights.layers[layer].v_b, ws.heads_in, rank, value_dim, rows, "absorb_v"));
  LLM_RETURN_IF_ERROR(Copy({ws.heads_out, value_dim, rows * value_dim},
                           {ws.values.values, heads * value_dim, value_dim}, rows, heads,
                           value_dim));
  if (!forms_[layer].o.quants) return absl::OkStatus();
  return kernels_.quantize(
      {.activations = Select(ws.values, {.values = true, .quants = true}, rows)}, Op("quantize"));
}

}  // namespace llm
