// Launcher of attention: lays out the workspace, chooses who merges the splits.
#include "kernels/attention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_ops.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm::cuda {
namespace {

static_assert(kSplitKeys == kAttentionSplit);

// Up to so many queries, splits run in blocks of their own: with more, queries alone fill a device.
constexpr int64_t kSplitTokens = 16;

struct Workspace {
  size_t values_bytes;    // results in f32, when the output has only quants: [tokens, cols]
  size_t partials_bytes;  // AttentionArgs::partials
};

Workspace WorkspaceOf(int64_t tokens, int64_t num_heads, int64_t head_dim, int64_t num_splits) {
  const int64_t values = tokens * num_heads * head_dim;
  const int64_t partials = std::min(tokens, kSplitTokens) * num_heads * num_splits *
                           AttentionPartFloats(static_cast<int>(head_dim));
  return {RoundUp<size_t>(static_cast<size_t>(values) * sizeof(float), 64),
          static_cast<size_t>(partials) * sizeof(float)};
}

absl::StatusOr<AttentionArgs> ArgsOf(const AttentionParams& p, const CudaStream& stream) {
  LLM_ASSIGN_OR_RETURN(const int32_t* query_start,
                       stream.uploads->Upload(stream.stream, p.query_start));
  LLM_ASSIGN_OR_RETURN(const int32_t* context_lens,
                       stream.uploads->Upload(stream.stream, p.context_lens));
  const size_t table_size = p.context_lens.size() * static_cast<size_t>(p.max_blocks);
  LLM_ASSIGN_OR_RETURN(
      const int32_t* block_table,
      stream.uploads->Upload(stream.stream, absl::MakeConstSpan(p.block_table, table_size)));
  const int longest = *std::max_element(p.context_lens.begin(), p.context_lens.end());
  AttentionArgs args = {};
  args.q = p.q;
  args.q_stride = p.q_stride;
  args.num_heads = p.num_heads;
  args.query_start = query_start;
  args.context_lens = context_lens;
  args.num_sequences = static_cast<int>(p.context_lens.size());
  args.block_table = block_table;
  args.max_blocks = p.max_blocks;
  args.kv = KvArgsOf(p.kv);
  args.scale = p.scale;
  args.window = p.window;
  args.soft_cap = p.soft_cap;
  args.sinks = p.sinks;
  args.num_splits = CeilDiv(longest, kAttentionSplit);
  args.num_tokens = p.output.rows;
  args.out = p.output.values;
  return args;
}

}  // namespace

size_t AttentionWorkspaceBytes(const AttentionShape& shape) {
  const Workspace workspace = WorkspaceOf(shape.max_tokens, shape.num_heads, shape.head_dim,
                                          CeilDiv(shape.max_context, kAttentionSplit));
  return workspace.values_bytes + workspace.partials_bytes;
}

absl::Status Attention(const AttentionParams& params, const CudaStream& stream) {
  const AttentionParams& p = params;
  LLM_RETURN_IF_ERROR(CheckAttention(p));
  if (p.output.rows == 0) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(AttentionArgs args, ArgsOf(p, stream));
  const Workspace workspace =
      WorkspaceOf(p.output.rows, p.num_heads, args.kv.head_dim, args.num_splits);
  const size_t needed = workspace.values_bytes + workspace.partials_bytes;
  if (p.workspace == nullptr || p.workspace_bytes < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention: workspace has ", p.workspace_bytes, " bytes, needs ", needed));
  }
  if (args.out == nullptr) args.out = reinterpret_cast<float*>(p.workspace);
  if (args.num_splits > 1 && p.output.rows <= kSplitTokens) {
    args.partials = reinterpret_cast<float*>(p.workspace + workspace.values_bytes);
  }
  LLM_RETURN_IF_CUDA_ERROR("attention", LaunchAttention(args, stream.stream));
  if (p.output.quants == nullptr) return absl::OkStatus();
  const QuantizeArgs quantize = {args.out, p.output};
  return CudaStatus("attention", LaunchQuantize(quantize, stream.stream));
}

}  // namespace llm::cuda
