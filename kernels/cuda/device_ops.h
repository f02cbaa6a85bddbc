// What the launchers (`<op>.cc`: checks, Status) hand to the kernels (`<op>_kernel.cu`). All
// pointers are device memory; shapes are checked and not empty. Compiled by nvcc: no Abseil here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "kernels/cuda/launch_stream.h"
#include "kernels/kv_layout.h"
#include "kernels/pending_tokens.h"
#include "kernels/row_draw.h"
#include "src/tensor/dtype.h"

namespace llm {

struct RmsNormArgs {
  const float* input;
  float* residual;
  const float* weight;
  float eps;
  Activations output;
};
cudaError_t LaunchRmsNorm(const RmsNormArgs& args, LaunchStream stream);

enum class DeviceGate : int32_t { kSilu, kGeluTanh, kClampedSwiglu };

struct GateArgs {
  const float* gate;
  const float* up;
  int64_t input_stride;
  float limit;
  Activations output;
};
cudaError_t LaunchGate(DeviceGate activation, const GateArgs& args, LaunchStream stream);

struct EmbedArgs {
  const std::byte* table;  // [vocab_size, cols]
  DType dtype;             // kF32, kF16 or kBF16
  const int32_t* token_ids;
  PendingTokens pending;
  int64_t table_rows;
  int64_t num_tokens;
  int64_t cols;
  float scale;
  float* out;
};
cudaError_t LaunchEmbed(const EmbedArgs& args, LaunchStream stream);

struct RopeTableArgs {
  const int32_t* positions;
  const float* inv_freq;
  int64_t num_tokens;
  int half;  // rope_dim / 2
  float magnitude;
  float* cos_sin;
};
cudaError_t LaunchRopeTable(const RopeTableArgs& args, LaunchStream stream);

// A KvLayerView, offsets computed.
struct KvArgs {
  std::byte* base;
  DType dtype;
  int block_size;
  int num_kv_heads;
  int head_dim;
  int scale_groups;  // 0: key_scale and value_scale hold for all
  int64_t values_offset;
  int64_t key_scales_offset;
  int64_t value_scales_offset;
  int64_t head_bytes;
  float key_scale;
  float value_scale;
};
inline KvArgs KvArgsOf(const KvLayerView& kv) {
  const KvLayout& layout = kv.layout;
  return {kv.base,
          layout.dtype,
          layout.block_size,
          layout.num_kv_heads,
          layout.head_dim,
          layout.scale_groups(),
          static_cast<int64_t>(layout.values_offset()),
          static_cast<int64_t>(layout.key_scales_offset()),
          static_cast<int64_t>(layout.value_scales_offset()),
          static_cast<int64_t>(layout.head_bytes()),
          kv.key_scale,
          kv.value_scale};
}

struct RopeKvWriteArgs {
  float* q;
  float* k;
  const float* v;
  int64_t q_stride;
  int64_t kv_stride;
  int num_heads;
  const float* q_norm;
  const float* k_norm;
  float norm_eps;
  bool adjacent;
  int rope_dim;
  const float* cos_sin;
  const int32_t* slot_mapping;
  int64_t num_tokens;
  KvArgs kv;
};
cudaError_t LaunchRopeKvWrite(const RopeKvWriteArgs& args, LaunchStream stream);

// Which rows meet which weight: `count` weights of [outputs, cols] that lie weight_bytes apart.
struct ExpertRows {
  const int32_t* begin = nullptr;  // [count + 1]; null: all have as many rows
  int count = 1;
  int64_t weight_bytes = 0;
};

// One of several weights that read the same activations.
struct LinearTarget {
  const std::byte* weight;
  int64_t weight_bytes;  // ExpertRows::weight_bytes
  int64_t outputs;
  const float* bias;
  float* out;
  int64_t out_stride;
};
inline constexpr int kMostTargets = 4;
// Those of a launch but the first, which its args name themselves.
struct MoreTargets {
  LinearTarget targets[kMostTargets - 1];
  int count = 0;
};

struct LinearArgs {
  const float* activations;  // [rows, cols]
  int64_t rows;
  int64_t cols;
  const std::byte* weight;  // [outputs, cols]
  DType dtype;              // kF32, kF16 or kBF16
  bool round_to_bf16;       // activations; REQUIRES: dtype is kBF16
  int64_t outputs;
  const float* bias;
  float* out;  // row stride out_stride
  int64_t out_stride;
  ExpertRows experts;
  MoreTargets more;
  const uint16_t* rounded = nullptr;  // the activations in bf16, where they have been rounded
};
// Any shape, in f32. REQUIRES: one target.
cudaError_t LaunchLinearF32(const LinearArgs& args, LaunchStream stream);
// On tensor cores. REQUIRES: round_to_bf16, cols % 8 == 0.
cudaError_t LaunchLinearBF16(const LinearArgs& args, LaunchStream stream);
// Its part for few rows.
cudaError_t LaunchLinearBF16Few(const LinearArgs& args, LaunchStream stream);

// Formats of weights in blocks; kernels/quant/formats.def has their numbers.
enum class BlockFormat : int32_t {
#define LLM_BLOCK_FORMAT(name, header) k##name,
#include "kernels/cuda/block_formats.def"
#undef LLM_BLOCK_FORMAT
};

struct LinearBlocksArgs {
  Activations activations;
  const std::byte* weight;  // [outputs, cols] in file blocks
  int64_t outputs;
  const float* bias;
  float* out;  // row stride out_stride
  int64_t out_stride;
  ExpertRows experts;
  MoreTargets more;
};
// Reads activations.values, in f32, on tensor cores all the same.
cudaError_t LaunchLinearBlocks(BlockFormat format, const LinearBlocksArgs& args,
                               LaunchStream stream);
// The same for plain kF16 or kBF16. REQUIRES: cols % 32 == 0.
cudaError_t LaunchLinearRuns(DType dtype, const LinearBlocksArgs& args, LaunchStream stream);
// Reads activations.quants, on tensor cores. REQUIRES: the format's weights are integers; one
// target.
cudaError_t LaunchLinearInt(BlockFormat format, const LinearBlocksArgs& args, LaunchStream stream);
// Of EmbedArgs, dtype is not read.
cudaError_t LaunchEmbedBlocks(BlockFormat format, const EmbedArgs& args, LaunchStream stream);

// kAttentionSplit, whose header would pull Abseil into device code; attention.cc compares them.
inline constexpr int kSplitKeys = 512;

struct AttentionArgs {
  const float* q;
  int64_t q_stride;
  int num_heads;
  const int32_t* query_start;   // [num_sequences + 1]
  const int32_t* context_lens;  // [num_sequences]
  int num_sequences;
  const int32_t* block_table;  // [num_sequences, max_blocks]
  int64_t max_blocks;
  KvArgs kv;
  float scale;
  int window;
  float soft_cap;
  const float* sinks;
  int num_splits;  // of the longest context
  // [tokens, num_heads, num_splits, AttentionPartFloats], or null: one block does all splits
  float* partials;
  int64_t num_tokens;
  float* out;  // [tokens, num_heads * head_dim]
};
constexpr int AttentionPartFloats(int head_dim) { return head_dim + 4; }
cudaError_t LaunchAttention(const AttentionArgs& args, LaunchStream stream);
// Its part that depends on the KV dtype.
cudaError_t LaunchAttentionF32(const AttentionArgs& args, LaunchStream stream);
cudaError_t LaunchAttentionF16(const AttentionArgs& args, LaunchStream stream);
cudaError_t LaunchAttentionBF16(const AttentionArgs& args, LaunchStream stream);
cudaError_t LaunchAttentionF8E4M3(const AttentionArgs& args, LaunchStream stream);
cudaError_t LaunchAttentionI8(const AttentionArgs& args, LaunchStream stream);
cudaError_t LaunchAttentionI4(const AttentionArgs& args, LaunchStream stream);

struct CopyBlocksArgs {
  const float* from;
  int64_t from_outer, from_inner;
  float* to;
  int64_t to_outer, to_inner;
  int64_t outer, inner, cols;
};
cudaError_t LaunchCopyBlocks(const CopyBlocksArgs& args, LaunchStream stream);

struct QuantizeArgs {
  const float* values;  // [rows, cols] of the output
  Activations output;   // its values are not written
};
cudaError_t LaunchQuantize(const QuantizeArgs& args, LaunchStream stream);

struct SoftCapArgs {
  float* values;
  int64_t rows;
  int64_t cols;
  float cap;
};
cudaError_t LaunchSoftCap(const SoftCapArgs& args, LaunchStream stream);

struct RowStatsArgs {
  const float* logits;
  int64_t rows;
  int64_t cols;
  int32_t* argmax;
  float* max;
  float* log_sum_exp;
};
cudaError_t LaunchRowStats(const RowStatsArgs& args, LaunchStream stream);

// What differs from draw to draw is read from device memory.
struct SampleArgs {
  float* logits;
  int64_t cols;
  const int32_t* argmax;
  const float* max;
  const float* log_sum_exp;
  const RowDraw* draws;  // [num_draws]
  int64_t num_draws;
  const LogitEdit* edits;
  float* originals;
  TokenLogprob* drawn;
  TokenLogprob* top;
  int64_t max_top;
};
cudaError_t LaunchSample(const SampleArgs& args, LaunchStream stream);

}  // namespace llm
