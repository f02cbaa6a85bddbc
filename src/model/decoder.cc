// Each part adds to the residual stream through the norm that comes after it: `update` is what is
// still to be added.
#include "src/model/decoder.h"

#include <utility>

#include "kernels/checks.h"
#include "src/base/dcheck.h"
#include "src/base/status_macros.h"
#include "src/base/thread_pool.h"

namespace llm {

Activations Decoder::Select(const Activations& slot, Forms forms, int64_t rows) {
  Activations result = slot;
  result.rows = rows;
  if (!forms.values) result.values = nullptr;
  if (!forms.quants) {
    result.quants = nullptr;
    result.scales = nullptr;
    result.sums = nullptr;
  }
  return result;
}

LinearOutput Decoder::To(const LinearWeight& linear, float* out) {
  return {
      .weight = linear.weight, .bias = linear.bias, .out = out, .out_stride = linear.weight.rows};
}

Decoder::Decoder(const Model* model, const Stream& stream, const DecoderShape& shape,
                 DecoderWorkspace workspace)
    : model_(*model),
      config_(model->config),
      kernels_(*model->kernels),
      stream_(stream),
      shape_(shape),
      workspace_(std::move(workspace)) {
  for (const LayerWeights& layer : model_.weights.layers) {
    const ExpertsWeights& experts = layer.experts;
    const bool low_rank = layer.q_a.weight.rows > 0;
    forms_.push_back(
        {.qkv = low_rank ? ReadBy({&layer.q_a.weight, &layer.kv_a.weight})
                         : ReadBy({&layer.q.weight, &layer.k.weight, &layer.v.weight,
                                   &layer.kv_a.weight}),
         .latent_q = ReadBy({&layer.q.weight}),
         .o = ReadBy({&layer.o.weight}),
         .feed_forward =
             ReadBy({&layer.gate.weight, &layer.up.weight, &experts.gate.weight, &experts.up.weight,
                     &experts.shared_gate.weight, &experts.shared_up.weight}),
         .down = ReadBy({&layer.down.weight}),
         .expert_gate_up = ReadBy({&experts.gate.weight, &experts.up.weight}),
         .expert_down = ReadBy({&experts.down.weight}),
         .shared_gate_up = ReadBy({&experts.shared_gate.weight, &experts.shared_up.weight}),
         .shared_down = ReadBy({&experts.shared_down.weight})});
    if (experts.router.weight.rows > 0) forms_.back().feed_forward.values = true;
  }
  head_forms_ = ReadBy({&model_.weights.head});
}

LinearParams Decoder::LinearOf(const Activations& activations,
                               absl::Span<const LinearOutput> outputs) const {
  return {
      .activations = activations, .outputs = outputs, .round_to_bf16 = !shape_.float_activations};
}

ExpertLinearParams Decoder::ExpertsOf(const Activations& activations,
                                      absl::Span<const int32_t> begin,
                                      absl::Span<const ExpertOutput> outputs) const {
  return {.activations = activations,
          .expert_begin = begin,
          .outputs = outputs,
          .round_to_bf16 = !shape_.float_activations};
}

const Stream& Decoder::Op(const char* name) const {
  if (stream_.pool != nullptr) stream_.pool->set_op(name);
  return stream_;
}

Decoder::Forms Decoder::ReadBy(std::initializer_list<const PackedWeight*> weights) const {
  Forms forms;
  for (const PackedWeight* weight : weights) {
    if (weight->rows == 0) continue;  // the layer has no such weight
    // Blocks of integers hold 32 or a multiple, so that groups of 32 always fit.
    if (ReadsQuants(weight->format) && !shape_.float_activations) {
      forms.quants = true;
    } else {
      forms.values = true;
    }
  }
  return forms;
}

absl::Status Decoder::Forward(const Batch& batch, absl::Span<const KvLayerView> kv, float* logits) {
  const auto tokens = static_cast<int64_t>(batch.token_ids.size());
  LLM_DCHECK(tokens > 0 && tokens <= shape_.max_tokens);
  LLM_DCHECK(kv.size() == model_.weights.layers.size());
  LLM_RETURN_IF_ERROR(kernels_.embed({.table = model_.weights.embedding,
                                      .token_ids = batch.token_ids,
                                      .scale = config_.embedding_scale,
                                      .out = workspace_.residual,
                                      .pending = batch.pending},
                                     Op("embed")));
  LLM_RETURN_IF_ERROR(RopeTables(batch));
  const float* update = nullptr;  // the first layer has nothing to add
  for (size_t layer = 0; layer < forms_.size(); ++layer) {
    LLM_RETURN_IF_ERROR(Attention(layer, batch, kv[layer], update));
    LLM_RETURN_IF_ERROR(FeedForward(layer, tokens));
    update = workspace_.update;
  }
  return Head(batch, logits);
}

Decoder::Forms Decoder::Produced(const float* order, Forms read) {
  return order == nullptr ? read : Forms{.values = true};
}

absl::StatusOr<Activations> Decoder::InOrder(const float* order, const Activations& slot,
                                             Forms read, int64_t rows,
                                             absl::Span<const int32_t> begin) {
  if (order == nullptr) return Select(slot, read, rows);
  Activations ordered = workspace_.ordered;
  ordered.cols = slot.cols;
  LLM_RETURN_IF_ERROR(kernels_.reorder({.from = slot.values,
                                        .order = order,
                                        .to = ordered.values,
                                        .rows = rows,
                                        .cols = slot.cols,
                                        .order_begin = begin},
                                       Op("reorder")));
  ordered = Select(ordered, {.values = true, .quants = read.quants}, rows);
  if (read.quants) LLM_RETURN_IF_ERROR(kernels_.quantize({.activations = ordered}, Op("quantize")));
  return ordered;
}

absl::Status Decoder::RopeTables(const Batch& batch) {
  for (size_t i = 0; i < config_.ropes.size(); ++i) {
    const RopeVariant& rope = config_.ropes[i];
    float* table = workspace_.rope_tables[i];
    if (!rope.long_inv_freq.empty()) {
      LLM_RETURN_IF_ERROR(LongropeTable(batch, rope, table));
      continue;
    }
    LLM_RETURN_IF_ERROR(kernels_.rope_table({.positions = batch.positions,
                                             .inv_freq = rope.inv_freq,
                                             .magnitude = rope.magnitude,
                                             .cos_sin = table},
                                            Op("rope_table")));
  }
  return absl::OkStatus();
}

// Each sequence turns by the frequencies that its prompt chose.
absl::Status Decoder::LongropeTable(const Batch& batch, const RopeVariant& rope, float* table) {
  for (size_t s = 0; s < batch.rope_variants.size(); ++s) {
    const int32_t begin = batch.query_start[s];
    const auto count = static_cast<size_t>(batch.query_start[s + 1] - begin);
    const bool is_long = batch.rope_variants[s] != 0;
    LLM_RETURN_IF_ERROR(kernels_.rope_table(
        {.positions = batch.positions.subspan(static_cast<size_t>(begin), count),
         .inv_freq = is_long ? rope.long_inv_freq : rope.inv_freq,
         .magnitude = rope.magnitude,
         .cos_sin = table + int64_t{begin} * config_.rope_dim},
        Op("rope_table")));
  }
  return absl::OkStatus();
}

absl::Status Decoder::Attention(size_t layer, const Batch& batch, const KvLayerView& kv,
                                const float* update) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const LayerConfig& layer_config = config_.layers[layer];
  const DecoderWorkspace& ws = workspace_;
  const GroupBatch& group = batch.groups[static_cast<size_t>(layer_config.kv_group)];
  const auto rows = static_cast<int64_t>(batch.token_ids.size());

  const Activations normed = Select(ws.normed, Produced(weights.q.order, forms_[layer].qkv), rows);
  LLM_RETURN_IF_ERROR(kernels_.rms_norm({.input = update,
                                         .residual = ws.residual,
                                         .weight = weights.attention_norm,
                                         .eps = config_.norm_eps,
                                         .output = normed},
                                        Op("attention_norm")));
  const bool latent = config_.latent.rank > 0;
  LLM_RETURN_IF_ERROR(latent ? LatentQkv(layer, rows) : PlainQkv(layer, rows));
  LLM_RETURN_IF_ERROR(
      kernels_.rope_kv_write({.q = ws.q,
                              .k = ws.k,
                              .v = ws.v,
                              .q_stride = config_.q_size(),
                              .kv_stride = config_.kv_size(),
                              .num_heads = config_.num_heads,
                              .q_norm = weights.q_norm,
                              .k_norm = weights.k_norm,
                              .norm_eps = config_.norm_eps,
                              .pairs = config_.rope_pairs,
                              .rope_dim = config_.rope_dim,
                              .cos_sin = ws.rope_tables[static_cast<size_t>(layer_config.rope)],
                              .slot_mapping = group.slot_mapping,
                              .kv = kv},
                             Op("rope_kv_write")));
  const Forms attended_forms =
      latent ? Forms{.values = true} : Produced(weights.o.order, forms_[layer].o);
  const Activations attended = Select(ws.attended, attended_forms, rows);
  LLM_RETURN_IF_ERROR(kernels_.attention({.q = ws.q,
                                          .q_stride = config_.q_size(),
                                          .num_heads = config_.num_heads,
                                          .query_start = batch.query_start,
                                          .context_lens = batch.context_lens,
                                          .block_table = group.block_table.data(),
                                          .max_blocks = group.max_blocks,
                                          .kv = kv,
                                          .scale = config_.attention_scale,
                                          .window = layer_config.window,
                                          .soft_cap = config_.attention_soft_cap,
                                          .sinks = weights.sinks,
                                          .output = attended,
                                          .workspace = ws.attention,
                                          .workspace_bytes = ws.attention_bytes},
                                         Op("attention")));
  if (latent) LLM_RETURN_IF_ERROR(LatentValues(layer, rows));
  LLM_ASSIGN_OR_RETURN(
      const Activations values,
      InOrder(weights.o.order, latent ? ws.latent.values : ws.attended, forms_[layer].o, rows));
  const LinearOutput o[] = {To(weights.o, ws.update)};
  LLM_RETURN_IF_ERROR(kernels_.linear(LinearOf(values, o), Op("output")));
  return PostNorm(weights.post_attention_norm, rows);
}

absl::Status Decoder::PlainQkv(size_t layer, int64_t rows) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const DecoderWorkspace& ws = workspace_;
  LLM_ASSIGN_OR_RETURN(const Activations normed,
                       InOrder(weights.q.order, ws.normed, forms_[layer].qkv, rows));
  const LinearOutput qkv[] = {To(weights.q, ws.q), To(weights.k, ws.k), To(weights.v, ws.v)};
  return kernels_.linear(LinearOf(normed, qkv), Op("qkv"));
}

absl::Status Decoder::PostNorm(const float* weight, int64_t rows) {
  if (weight == nullptr) return absl::OkStatus();
  const Activations in_place{
      .values = workspace_.update, .rows = rows, .cols = config_.hidden_size};
  return kernels_.rms_norm(
      {.input = workspace_.update, .weight = weight, .eps = config_.norm_eps, .output = in_place},
      Op("post_norm"));
}

// Rows that lie side by side go together: a step's decodes are one run.
absl::Status Decoder::GatherRows(absl::Span<const int32_t> rows, size_t first) {
  const DecoderWorkspace& ws = workspace_;
  const int64_t hidden = config_.hidden_size;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    const int64_t from = rows[begin] * hidden;
    const int64_t to = static_cast<int64_t>(first + begin) * hidden;
    const auto count = static_cast<int64_t>(end - begin);
    LLM_RETURN_IF_ERROR(
        Copy({ws.residual + from, hidden}, {ws.head_residual + to, hidden}, count, 1, hidden));
    LLM_RETURN_IF_ERROR(
        Copy({ws.update + from, hidden}, {ws.head_update + to, hidden}, count, 1, hidden));
    begin = end;
  }
  return absl::OkStatus();
}

// Rows of hidden states stand behind those of logits, which alone meet the head.
absl::Status Decoder::Head(const Batch& batch, float* logits) {
  const size_t num_logits = batch.logit_rows.size();
  const size_t num_rows = num_logits + batch.hidden_rows.size();
  if (num_rows == 0) return absl::OkStatus();
  const DecoderWorkspace& ws = workspace_;
  LLM_RETURN_IF_ERROR(GatherRows(batch.logit_rows, 0));
  LLM_RETURN_IF_ERROR(GatherRows(batch.hidden_rows, num_logits));
  Forms forms = head_forms_;
  if (num_rows > num_logits) forms.values = true;
  Activations normed = Select(ws.head_normed, forms, static_cast<int64_t>(num_rows));
  LLM_RETURN_IF_ERROR(kernels_.rms_norm({.input = ws.head_update,
                                         .residual = ws.head_residual,
                                         .weight = model_.weights.output_norm,
                                         .eps = config_.norm_eps,
                                         .output = normed},
                                        Op("output_norm")));
  if (num_logits == 0) return absl::OkStatus();
  normed = Select(ws.head_normed, head_forms_, static_cast<int64_t>(num_logits));
  const LinearOutput head[] = {To({.weight = model_.weights.head}, logits)};
  LLM_RETURN_IF_ERROR(kernels_.linear(LinearOf(normed, head), Op("head")));
  if (config_.logit_soft_cap == 0) return absl::OkStatus();
  return kernels_.soft_cap({.values = logits,
                            .rows = static_cast<int64_t>(num_logits),
                            .cols = config_.vocab_size,
                            .cap = config_.logit_soft_cap},
                           Op("soft_cap"));
}

}  // namespace llm
