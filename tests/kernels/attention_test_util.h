// A ragged batch over paged keys and values in which everything that must not be read is NaN.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/kv_element.h"
#include "tests/kernels/kernel_test_util.h"

namespace llm {

struct AttentionCase {
  DType dtype = DType::kF32;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 64;
  int window = 0;
  float soft_cap = 0;
  int block_size = 16;
  bool sinks = false;
  bool constant_scales = false;
};

// The keys, values and queries of some sequences. Blocks are shuffled; unused memory is 0xff: NaN
// in every format, or a NaN scale. Queries exist for every position, so that any chunk of a
// sequence can be asked for.
class AttentionData {
 public:
  AttentionData(const AttentionCase& c, std::vector<int> contexts)
      : case_(c), contexts_(std::move(contexts)) {
    layout_ = {c.dtype, c.block_size, c.num_kv_heads, c.head_dim, c.constant_scales};
    max_blocks_ = *std::max_element(contexts_.begin(), contexts_.end()) / c.block_size + 2;
    num_blocks_ = static_cast<int>(contexts_.size()) * max_blocks_ + 3;
    kv_.assign(layout_.block_bytes() * static_cast<size_t>(num_blocks_), std::byte{0xff});
    std::vector<int32_t> ids(static_cast<size_t>(num_blocks_));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(11));
    tables_.assign(ids.begin(), ids.end() - 3);
    for (size_t s = 0; s < contexts_.size(); ++s) Fill(s);
  }

  // Output rows of the last `queries[i]` tokens before `ends[i]` of sequence `sequences[i]`.
  struct Chunk {
    size_t sequence;
    int num_queries;
    int end;
  };
  ActivationMemory Run(const KernelTable& kernels, const std::vector<Chunk>& chunks,
                       Forms forms = Forms::kValues, int num_threads = 1) {
    std::vector<int32_t> query_start = {0};
    std::vector<int32_t> context_lens;
    std::vector<int32_t> table;
    Aligned<float> q;
    for (const Chunk& chunk : chunks) {
      query_start.push_back(query_start.back() + chunk.num_queries);
      context_lens.push_back(chunk.end);
      AppendTable(chunk, &table);
      const Aligned<float>& all = queries_[chunk.sequence];
      q.insert(q.end(), all.begin() + (chunk.end - chunk.num_queries) * token_size(),
               all.begin() + chunk.end * token_size());
    }
    ActivationMemory out(query_start.back(), token_size(), forms);
    const int max_context = *std::max_element(context_lens.begin(), context_lens.end());
    Aligned<std::byte> workspace(
        kernels.attention_workspace_bytes({.max_tokens = query_start.back(),
                                           .max_sequences = static_cast<int>(chunks.size()),
                                           .max_context = max_context,
                                           .num_heads = case_.num_heads,
                                           .head_dim = case_.head_dim,
                                           .num_threads = num_threads}),
        std::byte{0xff});
    const auto pool = MakePool(num_threads);
    const Aligned<float> sinks = RandomFloats(static_cast<size_t>(case_.num_heads), 77, 3.0f);
    const absl::Status status =
        kernels.attention({.q = q.data(),
                           .q_stride = token_size(),
                           .num_heads = case_.num_heads,
                           .query_start = query_start,
                           .context_lens = context_lens,
                           .block_table = table.data(),
                           .max_blocks = max_blocks_,
                           .kv = Kv(),
                           .scale = 1.0f / std::sqrt(static_cast<float>(case_.head_dim)),
                           .window = case_.window,
                           .soft_cap = case_.soft_cap,
                           .sinks = case_.sinks ? sinks.data() : nullptr,
                           .output = out.View(),
                           .workspace = workspace.data(),
                           .workspace_bytes = workspace.size()},
                          {pool.get()});
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  int64_t token_size() const { return int64_t{case_.num_heads} * case_.head_dim; }
  std::byte* kv() { return kv_.data(); }
  Aligned<float>& queries(size_t sequence) { return queries_[sequence]; }

  // Makes the key and the value of one token NaN.
  void PoisonToken(size_t sequence, int position) {
    const size_t row = sequence * static_cast<size_t>(max_blocks_);
    const int block = tables_[row + static_cast<size_t>(position / case_.block_size)];
    const std::vector<int32_t> slots = {block * case_.block_size + position % case_.block_size};
    Aligned<float> nans(static_cast<size_t>(token_size()), std::nanf(""));
    Aligned<float> k = nans;
    const int64_t stride = int64_t{case_.num_kv_heads} * case_.head_dim;
    const absl::Status status = ReferenceKernels().rope_kv_write({.q = nans.data(),
                                                                  .k = k.data(),
                                                                  .v = k.data(),
                                                                  .q_stride = token_size(),
                                                                  .kv_stride = stride,
                                                                  .num_heads = case_.num_heads,
                                                                  .slot_mapping = slots,
                                                                  .kv = Kv()},
                                                                 {});
    EXPECT_TRUE(status.ok()) << status;
  }

  // Makes one dimension of one token's value NaN. REQUIRES: a dtype that has one.
  void PoisonValue(size_t sequence, int position, int dim) {
    const KvLayerView kv = Kv();
    const size_t row = sequence * static_cast<size_t>(max_blocks_);
    const int block = tables_[row + static_cast<size_t>(position / case_.block_size)];
    std::byte* values = KvHead(kv, block, 0) + layout_.values_offset();
    const size_t element = ValueElement(layout_, position % case_.block_size, dim);
    StoreKvElement(case_.dtype, values, element, std::nanf(""), 1.0f);
  }

 private:
  // Scales that ordinary values use most of e4m3's range with.
  KvLayerView Kv() {
    if (!case_.constant_scales) return {layout_, kv_.data(), num_blocks_};
    return {layout_, kv_.data(), num_blocks_, 0.02f, 0.03f};
  }

  void Fill(size_t s) {
    const int n = contexts_[s];
    const int64_t stride = int64_t{case_.num_kv_heads} * case_.head_dim;
    const uint32_t seed = static_cast<uint32_t>(s) * 10;
    queries_.push_back(RandomFloats(static_cast<size_t>(n * token_size()), seed + 1));
    Aligned<float> q = queries_.back();
    Aligned<float> k = RandomFloats(static_cast<size_t>(n * stride), seed + 2);
    const Aligned<float> v = RandomFloats(static_cast<size_t>(n * stride), seed + 3);
    std::vector<int32_t> slots;
    for (int i = 0; i < n; ++i) {
      const size_t block =
          s * static_cast<size_t>(max_blocks_) + static_cast<size_t>(i / case_.block_size);
      slots.push_back(tables_[block] * case_.block_size + i % case_.block_size);
    }
    const absl::Status status = ReferenceKernels().rope_kv_write({.q = q.data(),
                                                                  .k = k.data(),
                                                                  .v = v.data(),
                                                                  .q_stride = token_size(),
                                                                  .kv_stride = stride,
                                                                  .num_heads = case_.num_heads,
                                                                  .slot_mapping = slots,
                                                                  .kv = Kv()},
                                                                 {});
    EXPECT_TRUE(status.ok()) << status;
  }

  // Entries wholly before the window, and beyond the context, are no block ids.
  void AppendTable(const Chunk& chunk, std::vector<int32_t>* table) const {
    const int first_position = chunk.end - chunk.num_queries;
    const int first_key = case_.window > 0 ? std::max(0, first_position - case_.window + 1) : 0;
    for (int b = 0; b < max_blocks_; ++b) {
      const bool visible =
          (b + 1) * case_.block_size > first_key && b * case_.block_size < chunk.end;
      const size_t i = chunk.sequence * static_cast<size_t>(max_blocks_) + static_cast<size_t>(b);
      table->push_back(visible ? tables_[i] : -123456789);
    }
  }

  AttentionCase case_;
  std::vector<int> contexts_;
  KvLayout layout_;
  int max_blocks_;
  int num_blocks_;
  Aligned<std::byte> kv_;
  std::vector<int32_t> tables_;  // [sequences, max_blocks]
  std::vector<Aligned<float>> queries_;
};

}  // namespace llm
