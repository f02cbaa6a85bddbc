// A task is a few tokens: one alone is too little to hand to another thread.
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/rope_kv_write_kernel.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {
namespace {

constexpr int64_t kTokensPerTask = 4;

RopeKvWriteToken Token(const RopeKvWriteParams& p, int64_t token) {
  const KvLayout& layout = p.kv.layout;
  const int slot = p.slot_mapping[static_cast<size_t>(token)];
  const bool stored = slot != kNoSlot;
  return {
      .q = p.q + token * p.q_stride,
      .k = p.k + token * p.kv_stride,
      .v = p.v + token * p.kv_stride,
      .num_heads = p.num_heads,
      .num_kv_heads = stored ? layout.num_kv_heads : 0,
      .head_dim = layout.head_dim,
      .q_norm = p.q_norm,
      .k_norm = p.k_norm,
      .norm_eps = p.norm_eps,
      .adjacent = p.pairs == RopePairs::kAdjacent,
      .rope_dim = p.rope_dim,
      .cos_sin = p.cos_sin + token * p.rope_dim,
      .dtype = layout.dtype,
      .block = p.kv.base +
               static_cast<size_t>(stored ? slot / layout.block_size : 0) * layout.block_bytes(),
      .head_bytes = layout.head_bytes(),
      .values_offset = layout.values_offset(),
      .key_scales_offset = layout.key_scales_offset(),
      .value_scales_offset = layout.value_scales_offset(),
      .offset = stored ? slot % layout.block_size : 0,
      .block_size = layout.block_size,
      .constant_scales = layout.constant_scales,
      .key_scale = p.kv.key_scale,
      .value_scale = p.kv.value_scale,
  };
}

}  // namespace

absl::Status RopeKvWrite(const IsaKernels& isa, const RopeKvWriteParams& params,
                         const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckRopeKvWrite(params));
  const int64_t num_tokens = static_cast<int64_t>(params.slot_mapping.size());
  RunTasks(stream, CeilDiv(num_tokens, kTokensPerTask), [&](int64_t task, int /*worker*/) {
    const int64_t begin = task * kTokensPerTask;
    const int64_t end = std::min(begin + kTokensPerTask, num_tokens);
    for (int64_t token = begin; token < end; ++token) {
      isa.rope_kv_write_token(Token(params, token));
    }
  });
  return absl::OkStatus();
}

}  // namespace llm::cpu
