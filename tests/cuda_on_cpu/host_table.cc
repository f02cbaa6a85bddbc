// Each op once more, with the extents of its operands.
#include "tests/cuda_on_cpu/host_table.h"

#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"
#include "tests/cuda_on_cpu/device_copies.h"

namespace llm {
namespace {

size_t Size(int64_t a, int64_t b = 1) { return static_cast<size_t>(a * b); }

// Of rows that lie `stride` apart: nothing behind the last one.
size_t Strided(int64_t rows, int64_t cols, int64_t stride) {
  return rows == 0 ? 0 : Size((rows - 1) * stride + cols);
}

KvLayerView Kv(const KvLayerView& kv, DeviceCopies* copies) {
  KvLayerView copy = kv;
  copy.base = copies->InOut(kv.base, kv.layout.block_bytes() * Size(kv.num_blocks));
  return copy;
}

absl::StatusOr<PackedWeight> Weight(const PackedWeight& weight, DeviceCopies* copies) {
  LLM_ASSIGN_OR_RETURN(const size_t bytes,
                       ReferencePackedBytes(weight.format, weight.rows, weight.cols));
  PackedWeight copy = weight;
  copy.data = copies->In(weight.data, bytes);
  return copy;
}

absl::Status Linear(const LinearParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckLinear(params));
  DeviceCopies copies;
  LinearParams p = params;
  p.activations = copies.InOut(params.activations);
  std::vector<LinearOutput> outputs(params.outputs.begin(), params.outputs.end());
  for (LinearOutput& output : outputs) {
    LLM_ASSIGN_OR_RETURN(output.weight, Weight(output.weight, &copies));
    output.bias = copies.In(output.bias, Size(output.weight.rows));
    output.out = copies.InOut(output.out,
                              Strided(p.activations.rows, output.weight.rows, output.out_stride));
  }
  p.outputs = outputs;
  return copies.Finish(cuda::Linear(p, copies.stream()));
}

absl::Status Embed(const EmbedParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckEmbed(params));
  DeviceCopies copies;
  EmbedParams p = params;
  LLM_ASSIGN_OR_RETURN(p.table, Weight(params.table, &copies));
  p.out = copies.InOut(params.out, params.token_ids.size() * Size(params.table.cols));
  p.pending.argmax = copies.In(params.pending.argmax, Size(params.pending.num_rows));
  p.pending.drawn = copies.In(params.pending.drawn, Size(params.pending.num_draws));
  return copies.Finish(cuda::Embed(p, copies.stream()));
}

absl::Status RmsNorm(const RmsNormParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckRmsNorm(params));
  DeviceCopies copies;
  RmsNormParams p = params;
  const size_t size = Size(params.output.rows, params.output.cols);
  p.input = copies.In(params.input, size);
  p.residual = copies.InOut(params.residual, size);
  p.weight = copies.In(params.weight, Size(params.output.cols));
  p.output = copies.InOut(params.output);
  return copies.Finish(cuda::RmsNorm(p, copies.stream()));
}

absl::Status Gate(const GateParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckGate(params));
  DeviceCopies copies;
  GateParams p = params;
  const size_t size = Strided(params.output.rows, params.output.cols, params.input_stride);
  p.gate = copies.In(params.gate, size);
  p.up = copies.In(params.up, size);
  p.output = copies.InOut(params.output);
  return copies.Finish(cuda::Gate(p, copies.stream()));
}

absl::Status RopeTable(const RopeTableParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckRopeTable(params));
  DeviceCopies copies;
  RopeTableParams p = params;
  p.cos_sin = copies.InOut(params.cos_sin, params.positions.size() * params.inv_freq.size() * 2);
  return copies.Finish(cuda::RopeTable(p, copies.stream()));
}

absl::Status RopeKvWrite(const RopeKvWriteParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckRopeKvWrite(params));
  DeviceCopies copies;
  RopeKvWriteParams p = params;
  const auto tokens = static_cast<int64_t>(params.slot_mapping.size());
  const KvLayout& layout = params.kv.layout;
  const size_t kv_size =
      Strided(tokens, int64_t{layout.num_kv_heads} * layout.head_dim, params.kv_stride);
  p.q = copies.InOut(params.q,
                     Strided(tokens, int64_t{params.num_heads} * layout.head_dim, params.q_stride));
  p.k = copies.InOut(params.k, kv_size);
  p.v = copies.In(params.v, kv_size);
  p.q_norm = copies.In(params.q_norm, Size(layout.head_dim));
  p.k_norm = copies.In(params.k_norm, Size(layout.head_dim));
  p.cos_sin = copies.In(params.cos_sin, Size(tokens, params.rope_dim));
  p.kv = Kv(params.kv, &copies);
  return copies.Finish(cuda::RopeKvWrite(p, copies.stream()));
}

absl::Status Attention(const AttentionParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckAttention(params));
  DeviceCopies copies;
  AttentionParams p = params;
  p.q = copies.In(params.q, Strided(params.output.rows, params.output.cols, params.q_stride));
  p.kv = Kv(params.kv, &copies);
  p.sinks = copies.In(params.sinks, Size(params.num_heads));
  p.output = copies.InOut(params.output);
  p.workspace = copies.InOut(params.workspace, params.workspace_bytes);
  return copies.Finish(cuda::Attention(p, copies.stream()));
}

absl::Status RowStats(const RowStatsParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckRowStats(params));
  DeviceCopies copies;
  RowStatsParams p = params;
  p.logits = copies.In(params.logits, Size(params.rows, params.cols));
  p.argmax = copies.InOut(params.argmax, Size(params.rows));
  p.max = copies.InOut(params.max, Size(params.rows));
  p.log_sum_exp = copies.InOut(params.log_sum_exp, Size(params.rows));
  return copies.Finish(cuda::RowStats(p, copies.stream()));
}

absl::Status Sample(const SampleParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckSample(params));
  DeviceCopies copies;
  SampleParams p = params;
  p.logits = copies.InOut(params.logits, Size(params.rows, params.cols));
  p.argmax = copies.In(params.argmax, Size(params.rows));
  p.max = copies.In(params.max, Size(params.rows));
  p.log_sum_exp = copies.In(params.log_sum_exp, Size(params.rows));
  p.originals = copies.InOut(params.originals, params.edits.size());
  p.drawn = copies.InOut(params.drawn, params.draws.size());
  p.top = copies.InOut(params.top, params.draws.size() * Size(params.max_top));
  return copies.Finish(cuda::Sample(p, copies.stream()));
}

absl::Status SoftCap(const SoftCapParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckSoftCap(params));
  DeviceCopies copies;
  SoftCapParams p = params;
  p.values = copies.InOut(params.values, Size(params.rows, params.cols));
  return copies.Finish(cuda::SoftCap(p, copies.stream()));
}

absl::Status Quantize(const QuantizeParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckQuantize(params));
  DeviceCopies copies;
  return copies.Finish(cuda::Quantize({copies.InOut(params.activations)}, copies.stream()));
}

absl::Span<const int32_t> Ids(absl::Span<const int32_t> ids, DeviceCopies* copies) {
  return {copies->In(ids.data(), ids.size()), ids.size()};
}

absl::Status Reorder(const ReorderParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckReorder(params));
  DeviceCopies copies;
  ReorderParams p = params;
  p.from = copies.In(params.from, Size(params.rows, params.cols));
  const size_t orders = params.order_begin.empty() ? 1 : params.order_begin.size() - 1;
  p.order = copies.In(params.order, orders * Size(params.cols));
  p.order_begin = Ids(params.order_begin, &copies);
  p.to = copies.InOut(params.to, Size(params.rows, params.cols));
  return copies.Finish(cuda::Reorder(p, copies.stream()));
}

absl::Status MoeRoute(const MoeRouteParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckMoeRoute(params));
  DeviceCopies copies;
  MoeRouteParams p = params;
  const int64_t experts = params.rule.num_experts;
  const size_t rows = Size(params.num_tokens, params.rule.experts_per_token);
  p.logits = copies.In(params.logits, Size(params.num_tokens, experts));
  p.selection_bias = copies.In(params.selection_bias, Size(experts));
  p.weights = copies.InOut(params.weights, rows);
  p.rows = copies.InOut(params.rows, rows);
  p.row_tokens = copies.InOut(params.row_tokens, rows);
  p.expert_begin = copies.InOut(params.expert_begin, Size(experts + 1));
  return copies.Finish(cuda::MoeRoute(p, copies.stream()));
}

absl::Status MoeGather(const MoeGatherParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckMoeGather(params));
  DeviceCopies copies;
  MoeGatherParams p = params;
  p.input = copies.InOut(params.input);
  p.row_tokens = Ids(params.row_tokens, &copies);
  p.output = copies.InOut(params.output);
  return copies.Finish(cuda::MoeGather(p, copies.stream()));
}

absl::Status MoeCombine(const MoeCombineParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckMoeCombine(params));
  DeviceCopies copies;
  MoeCombineParams p = params;
  const size_t choices = Size(params.num_tokens, params.experts_per_token);
  const size_t size = Size(params.num_tokens, params.cols);
  p.input = copies.In(params.input, Size(params.num_rows, params.cols));
  p.weights = copies.In(params.weights, choices);
  p.rows = copies.In(params.rows, choices);
  p.shared = copies.In(params.shared, size);
  p.out = copies.InOut(params.out, size);
  return copies.Finish(cuda::MoeCombine(p, copies.stream()));
}

absl::Status ExpertLinear(const ExpertLinearParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckExpertLinear(params));
  DeviceCopies copies;
  ExpertLinearParams p = params;
  p.activations = copies.InOut(params.activations);
  p.expert_begin = Ids(params.expert_begin, &copies);
  std::vector<ExpertOutput> outputs(params.outputs.begin(), params.outputs.end());
  for (ExpertOutput& output : outputs) {
    LLM_ASSIGN_OR_RETURN(output.weight, Weight(output.weight, &copies));
    output.bias = copies.In(output.bias, Size(output.weight.rows));
    output.out = copies.InOut(output.out, Size(p.activations.rows, output.outputs));
  }
  p.outputs = outputs;
  return copies.Finish(cuda::ExpertLinear(p, copies.stream()));
}

absl::Status CopyBlocks(const CopyBlocksParams& params, const Stream& /*stream*/) {
  LLM_RETURN_IF_ERROR(CheckCopyBlocks(params));
  DeviceCopies copies;
  CopyBlocksParams p = params;
  const auto extent = [&](int64_t outer, int64_t inner) {
    if (p.outer == 0 || p.inner == 0) return size_t{0};
    return Size((p.outer - 1) * outer + (p.inner - 1) * inner + p.cols);
  };
  p.from = copies.In(params.from, extent(params.from_outer, params.from_inner));
  p.to = copies.InOut(params.to, extent(params.to_outer, params.to_inner));
  return copies.Finish(cuda::CopyBlocks(p, copies.stream()));
}

}  // namespace

const KernelTable& CudaOnCpuKernels() {
  static constexpr KernelTable kTable = {
      .name = "cuda_on_cpu",
      .packed_layout = "blocks-1",
      .packed_bytes = ReferencePackedBytes,
      .pack_rows = ReferencePackRows,
      .linear = Linear,
      .embed = Embed,
      .rms_norm = RmsNorm,
      .gate = Gate,
      .rope_table = RopeTable,
      .rope_kv_write = RopeKvWrite,
      .attention = Attention,
      .attention_workspace_bytes = cuda::AttentionWorkspaceBytes,
      .row_stats = RowStats,
      .sample = Sample,
      .soft_cap = SoftCap,
      .quantize = Quantize,
      .copy_blocks = CopyBlocks,
      .reorder = Reorder,
      .moe_route = MoeRoute,
      .moe_gather = MoeGather,
      .moe_combine = MoeCombine,
      .expert_linear = ExpertLinear,
  };
  return kTable;
}

}  // namespace llm
