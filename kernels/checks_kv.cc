// Checks of the ops on paged keys and values. Every slot and block id is looked at, once per call.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

absl::Status CheckKv(const char* op, const KvLayerView& kv, int num_heads) {
  const KvLayout& layout = kv.layout;
  if (layout.dtype == DType::kI32 || DTypeBits(layout.dtype) == 0) {
    return Invalid(op, ": keys and values cannot be stored as ", DTypeName(layout.dtype));
  }
  if (!IsPowerOfTwo(layout.block_size) || layout.block_size % kKeyTile != 0) {
    return Invalid(op, ": block_size ", layout.block_size, " is not a power of two from ",
                   kKeyTile);
  }
  if (layout.head_dim < 16 || layout.head_dim > kMaxHeadDim || layout.head_dim % 16 != 0) {
    return Invalid(op, ": head_dim ", layout.head_dim, " is not a multiple of 16 up to ",
                   kMaxHeadDim);
  }
  if (layout.dtype == DType::kI4 && layout.head_dim % kKvGroup != 0) {
    return Invalid(op, ": int4 keys and values need a head_dim that is a multiple of ", kKvGroup,
                   ", not ", layout.head_dim);
  }
  const bool scales_hold = std::isfinite(kv.key_scale) && kv.key_scale > 0 &&
                           std::isfinite(kv.value_scale) && kv.value_scale > 0;
  if (layout.constant_scales && (layout.dtype != DType::kF8E4M3 || !scales_hold)) {
    return Invalid(op, ": constant scales ", kv.key_scale, " and ", kv.value_scale, " of ",
                   DTypeName(layout.dtype));
  }
  if (layout.num_kv_heads < 1 || num_heads < 1 || num_heads % layout.num_kv_heads != 0) {
    return Invalid(op, ": ", num_heads, " heads cannot share ", layout.num_kv_heads, " kv heads");
  }
  if (kv.num_blocks < 0 || (kv.num_blocks > 0 && kv.base == nullptr)) {
    return Invalid(op, ": ", kv.num_blocks, " blocks without memory");
  }
  return absl::OkStatus();
}

// The first block that a query of the sequence can see.
int64_t FirstBlock(const AttentionParams& p, int64_t first_position) {
  if (p.window <= 0) return 0;
  const int64_t first_key = first_position - p.window + 1;
  return first_key <= 0 ? 0 : first_key / p.kv.layout.block_size;
}

absl::Status CheckSequence(const AttentionParams& p, size_t i) {
  const int64_t num_queries = int64_t{p.query_start[i + 1]} - p.query_start[i];
  const int64_t context = p.context_lens[i];
  if (num_queries < 0 || p.query_start[i] < 0 || context < num_queries) {
    return Invalid("attention: sequence ", i, " has ", num_queries, " queries and ", context,
                   " keys");
  }
  if (num_queries == 0) return absl::OkStatus();
  const int64_t num_blocks = CeilDiv<int64_t>(context, p.kv.layout.block_size);
  if (num_blocks > p.max_blocks) {
    return Invalid("attention: sequence ", i, " has ", context, " keys in ", num_blocks,
                   " blocks, its table ", p.max_blocks);
  }
  const int32_t* table = p.block_table + static_cast<int64_t>(i) * p.max_blocks;
  for (int64_t b = FirstBlock(p, context - num_queries); b < num_blocks; ++b) {
    if (table[b] < 0 || table[b] >= p.kv.num_blocks) {
      return Invalid("attention: block ", b, " of sequence ", i, " is ", table[b],
                     ", the layer has ", p.kv.num_blocks);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRopeKvWrite(const RopeKvWriteParams& params) {
  const RopeKvWriteParams& p = params;
  LLM_RETURN_IF_ERROR(CheckKv("rope_kv_write", p.kv, p.num_heads));
  const KvLayout& layout = p.kv.layout;
  if (p.rope_dim < 0 || p.rope_dim % 2 != 0 || p.rope_dim > layout.head_dim) {
    return Invalid("rope_kv_write: rope_dim ", p.rope_dim, " of head_dim ", layout.head_dim);
  }
  if (p.pairs != RopePairs::kHalves && p.pairs != RopePairs::kAdjacent) {
    return Invalid("rope_kv_write: unknown pairs ", static_cast<int32_t>(p.pairs));
  }
  if (p.q_stride < int64_t{p.num_heads} * layout.head_dim ||
      p.kv_stride < int64_t{layout.num_kv_heads} * layout.head_dim) {
    return Invalid("rope_kv_write: strides ", p.q_stride, " and ", p.kv_stride,
                   " are shorter than a token");
  }
  if (p.slot_mapping.empty()) return absl::OkStatus();
  if (p.q == nullptr || p.k == nullptr || p.v == nullptr ||
      (p.rope_dim > 0 && p.cos_sin == nullptr)) {
    return Invalid("rope_kv_write: q, k, v or cos_sin is null");
  }
  const int64_t num_slots = int64_t{p.kv.num_blocks} * layout.block_size;
  for (size_t i = 0; i < p.slot_mapping.size(); ++i) {
    if (p.slot_mapping[i] == kNoSlot) continue;
    if (p.slot_mapping[i] < 0 || p.slot_mapping[i] >= num_slots) {
      return Invalid("rope_kv_write: token ", i, " has slot ", p.slot_mapping[i], ", the layer ",
                     num_slots);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAttention(const AttentionParams& params) {
  const AttentionParams& p = params;
  LLM_RETURN_IF_ERROR(CheckKv("attention", p.kv, p.num_heads));
  LLM_RETURN_IF_ERROR(CheckActivations("attention", p.output));
  const int64_t token_size = int64_t{p.num_heads} * p.kv.layout.head_dim;
  if (p.query_start.size() != p.context_lens.size() + 1 || p.query_start[0] != 0 ||
      p.query_start.back() != p.output.rows) {
    return Invalid("attention: query_start does not cover ", p.output.rows, " tokens of ",
                   p.context_lens.size(), " sequences");
  }
  if (p.output.cols != token_size || p.q_stride < token_size) {
    return Invalid("attention: output has ", p.output.cols, " columns and q_stride is ", p.q_stride,
                   ", a token has ", token_size);
  }
  if (p.window < 0) return Invalid("attention: window ", p.window);
  if (p.output.rows > 0 && (p.q == nullptr || p.block_table == nullptr)) {
    return Invalid("attention: q or block_table is null");
  }
  for (size_t i = 0; i < p.context_lens.size(); ++i) LLM_RETURN_IF_ERROR(CheckSequence(p, i));
  return absl::OkStatus();
}

}  // namespace llm
