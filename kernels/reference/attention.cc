// All scores of a query first, then their softmax, then the weighted values. A task is one token.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/kv_element.h"
#include "kernels/parallel.h"
#include "kernels/reference/quantize.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

size_t WorkerBytes(int64_t max_context, int64_t token_size) {
  return RoundUp<size_t>(static_cast<size_t>(max_context) * sizeof(double), 64) +
         RoundUp<size_t>(static_cast<size_t>(token_size) * sizeof(float), 64);
}

// One query token: position in the sequence, its keys, its row.
struct Query {
  const int32_t* blocks;
  int64_t row;
  int64_t first_key;
  int64_t end_key;
};

Query FindQuery(const AttentionParams& p, int64_t row) {
  const auto next = std::upper_bound(p.query_start.begin(), p.query_start.end(), row);
  const int64_t sequence = next - p.query_start.begin() - 1;
  const int64_t end_key = p.context_lens[static_cast<size_t>(sequence)] - (*next - row) + 1;
  const int64_t first_key = p.window > 0 ? std::max<int64_t>(0, end_key - p.window) : 0;
  return {p.block_table + sequence * p.max_blocks, row, first_key, end_key};
}

// A stored token's head, its keys or its values, with their scales.
struct Stored {
  const KvLayout* layout;
  const std::byte* matrix;
  const std::byte* scales;  // of the token in group 0
  int offset;
  double constant_scale;

  int groups() const { return std::max(layout->scale_groups(), 1); }
  int group_size() const { return layout->head_dim / groups(); }
  double Scale(int group) const {
    if (!layout->scaled()) return constant_scale;
    const size_t at = 2 * static_cast<size_t>(group) * static_cast<size_t>(layout->block_size);
    return double{F16ToF32(LoadAs<uint16_t>(scales + at))};
  }
};

Stored FindStored(const AttentionParams& p, const Query& query, int kv_head, int64_t key,
                  bool values) {
  const KvLayout& layout = p.kv.layout;
  const std::byte* head = KvHead(p.kv, query.blocks[key / layout.block_size], kv_head);
  const int offset = static_cast<int>(key % layout.block_size);
  const size_t scales = values ? layout.value_scales_offset() : layout.key_scales_offset();
  return {&layout, values ? head + layout.values_offset() : head,
          head + scales + 2 * static_cast<size_t>(offset), offset,
          double{values ? p.kv.value_scale : p.kv.key_scale}};
}

double Score(const AttentionParams& p, const float* q, const Stored& key) {
  const KvLayout& layout = p.kv.layout;
  double dot = 0;
  for (int g = 0; g < key.groups(); ++g) {
    double sum = 0;
    for (int d = g * key.group_size(); d < (g + 1) * key.group_size(); ++d) {
      const size_t element = KeyElement(layout, key.offset, d);
      sum += double{q[d]} * double{LoadKvElement(layout.dtype, key.matrix, element)};
    }
    dot += sum * key.Scale(g);
  }
  const double score = dot * double{p.scale};
  return p.soft_cap > 0 ? double{p.soft_cap} * std::tanh(score / double{p.soft_cap}) : score;
}

// acc += weight * value
void AddValue(const Stored& value, double weight, double* acc) {
  const KvLayout& layout = *value.layout;
  for (int g = 0; g < value.groups(); ++g) {
    const double factor = weight * value.Scale(g);
    for (int d = g * value.group_size(); d < (g + 1) * value.group_size(); ++d) {
      const size_t element = ValueElement(layout, value.offset, d);
      acc[d] += factor * double{LoadKvElement(layout.dtype, value.matrix, element)};
    }
  }
}

void AttendHead(const AttentionParams& p, const Query& query, int h, double* scores, float* out) {
  const KvLayout& layout = p.kv.layout;
  const int kv_head = h / (p.num_heads / layout.num_kv_heads);
  const float* q = p.q + query.row * p.q_stride + int64_t{h} * layout.head_dim;
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t key = query.first_key; key < query.end_key; ++key) {
    double& score = scores[key - query.first_key];
    score = Score(p, q, FindStored(p, query, kv_head, key, false));
    max = std::max(max, score);
  }
  const bool has_sink = p.sinks != nullptr;
  if (has_sink) max = std::max(max, double{p.sinks[h]});
  std::array<double, kMaxHeadDim> acc{};
  double sum = has_sink ? std::exp(double{p.sinks[h]} - max) : 0;
  for (int64_t key = query.first_key; key < query.end_key; ++key) {
    const double weight = std::exp(scores[key - query.first_key] - max);
    sum += weight;
    AddValue(FindStored(p, query, kv_head, key, true), weight, acc.data());
  }
  for (int d = 0; d < layout.head_dim; ++d) {
    out[d] = static_cast<float>(acc[static_cast<size_t>(d)] / sum);
  }
}

}  // namespace

size_t ReferenceAttentionWorkspaceBytes(const AttentionShape& shape) {
  return static_cast<size_t>(shape.num_threads) *
         WorkerBytes(shape.max_context, int64_t{shape.num_heads} * shape.head_dim);
}

absl::Status ReferenceAttention(const AttentionParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckAttention(params));
  if (params.output.rows == 0) return absl::OkStatus();
  const int64_t max_context =
      *std::max_element(params.context_lens.begin(), params.context_lens.end());
  const int64_t token_size = params.output.cols;
  const size_t worker_bytes = WorkerBytes(max_context, token_size);
  const size_t needed = worker_bytes * static_cast<size_t>(NumWorkers(stream));
  if (params.workspace == nullptr || params.workspace_bytes < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attention: workspace has ", params.workspace_bytes, " bytes, needs ", needed));
  }
  RunTasks(stream, params.output.rows, [&](int64_t row, int worker) {
    std::byte* workspace = params.workspace + static_cast<size_t>(worker) * worker_bytes;
    double* scores = reinterpret_cast<double*>(workspace);
    float* out = reinterpret_cast<float*>(workspace + worker_bytes) -
                 RoundUp<int64_t>(token_size, 64 / sizeof(float));
    const Query query = FindQuery(params, row);
    for (int h = 0; h < params.num_heads; ++h) {
      AttendHead(params, query, h, scores, out + int64_t{h} * params.kv.layout.head_dim);
    }
    ReferenceStore(params.output, row, 0, out, token_size);
  });
  return absl::OkStatus();
}

}  // namespace llm
