// Speed of `attention` by instruction set, KV dtype and shape of the batch. A call attends in one
// layer; layers take turns, so that a long context comes from memory as it does in a model.
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/kernel_table.h"
#include "src/base/thread_pool.h"
#include "src/tensor/buffer.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

constexpr int kBlockSize = 16;

struct Case {
  const KernelTable* kernels;
  const char* shape;
  DType dtype;
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int sequences;
  int queries;  // of each sequence
  int context;
  int layers;
  int threads;
};

// Elements and scales of ordinary size, whatever the dtype.
void FillLayer(const KvLayout& layout, int blocks, std::byte* base) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int b = 0; b < blocks * layout.num_kv_heads; ++b) {
    std::byte* head = base + static_cast<size_t>(b) * layout.head_bytes();
    const size_t elements = 2 * layout.matrix_bytes() / DTypeBytes(layout.dtype);
    for (size_t i = 0; i < elements; ++i) {
      const float x = uniform(random);
      const uint16_t half = F32ToF16(x);
      const uint16_t bf16 = F32ToBF16(x);
      const auto byte = layout.dtype == DType::kI8
                            ? static_cast<uint8_t>(static_cast<int8_t>(x * 127))
                            : F32ToF8E4M3(x * 448);
      std::byte* at = head + i * DTypeBytes(layout.dtype);
      switch (layout.dtype) {
        case DType::kF32:
          std::memcpy(at, &x, sizeof(x));
          break;
        case DType::kF16:
          std::memcpy(at, &half, sizeof(half));
          break;
        case DType::kBF16:
          std::memcpy(at, &bf16, sizeof(bf16));
          break;
        default:
          std::memcpy(at, &byte, sizeof(byte));
      }
    }
    const uint16_t scale = F32ToF16(layout.dtype == DType::kI8 ? 1.0f / 127 : 1.0f / 448);
    for (size_t i = 2 * layout.matrix_bytes(); i < layout.head_bytes(); i += 2) {
      std::memcpy(head + i, &scale, sizeof(scale));
    }
  }
}

struct Memory {
  explicit Memory(const Case& c)
      : layout{c.dtype, kBlockSize, c.num_kv_heads, c.head_dim},
        blocks_per_sequence((c.context + kBlockSize - 1) / kBlockSize),
        q(static_cast<size_t>(c.sequences * c.queries * c.num_heads * c.head_dim), 0.3f),
        out(q.size()) {
    const int blocks = blocks_per_sequence * c.sequences;
    for (int l = 0; l < c.layers; ++l) {
      kv.push_back(*Buffer::Allocate(&allocator, layout.block_bytes() * static_cast<size_t>(blocks),
                                     "keys and values"));
      if (l == 0) {
        FillLayer(layout, blocks, kv[0].data());
      } else {
        std::memcpy(kv.back().data(), kv[0].data(), kv[0].size());
      }
    }
    for (int s = 0; s < c.sequences; ++s) {
      query_start.push_back((s + 1) * c.queries);
      context_lens.push_back(c.context);
      for (int b = 0; b < blocks_per_sequence; ++b) {
        table.push_back(s * blocks_per_sequence + b);
      }
    }
    workspace = *Buffer::Allocate(
        &allocator,
        c.kernels->attention_workspace_bytes({.max_tokens = c.sequences * c.queries,
                                              .max_sequences = c.sequences,
                                              .max_context = c.context,
                                              .num_heads = c.num_heads,
                                              .head_dim = c.head_dim,
                                              .num_threads = c.threads}),
        "workspace");
  }

  KvLayout layout;
  int blocks_per_sequence;
  Allocator allocator;
  std::vector<Buffer> kv;
  std::vector<float> q, out;
  std::vector<int32_t> query_start = {0}, context_lens, table;
  Buffer workspace;
};

void RunAttention(benchmark::State& state, const Case& c) {
  const auto pool = ThreadPool::Create({.num_threads = c.threads});
  Memory m(c);
  const int64_t width = int64_t{c.num_heads} * c.head_dim;
  AttentionParams params = {
      .q = m.q.data(),
      .q_stride = width,
      .num_heads = c.num_heads,
      .query_start = m.query_start,
      .context_lens = m.context_lens,
      .block_table = m.table.data(),
      .max_blocks = m.blocks_per_sequence,
      .kv = {m.layout, nullptr, m.blocks_per_sequence * c.sequences},
      .scale = 0.125f,
      .output = {.values = m.out.data(), .rows = c.sequences * c.queries, .cols = width},
      .workspace = m.workspace.data(),
      .workspace_bytes = m.workspace.size()};
  size_t layer = 0;
  for (auto _ : state) {
    params.kv.base = m.kv[layer].data();
    layer = (layer + 1) % m.kv.size();
    if (!c.kernels->attention(params, {pool->get()}).ok()) return;
  }
  // Causal: a query of the chunk does not see those behind it.
  const double pairs = static_cast<double>(c.sequences) * c.queries *
                       (c.context - (c.queries - 1) / 2.0) * c.num_heads;
  const double calls = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] =
      benchmark::Counter(calls * pairs * 4 * c.head_dim * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(calls * static_cast<double>(m.kv[0].size()) * 1e-9,
                                              benchmark::Counter::kIsRate);
}

void Register(const Case& c) {
  const std::string name = std::string("attention/") + c.kernels->name + "/" +
                           std::string(DTypeName(c.dtype)) + "/" + c.shape +
                           "/threads:" + std::to_string(c.threads);
  auto* registered = benchmark::RegisterBenchmark(
      name.c_str(), [c](benchmark::State& state) { RunAttention(state, c); });
  registered->MinTime(0.2);
  // One thread is measured by its processor time, which other programs disturb less.
  if (c.threads > 1) registered->UseRealTime();
}

const bool kRegistered = [] {
  for (const KernelTable* kernels : AvailableKernels()) {
    if (std::strcmp(kernels->name, "reference") == 0) continue;
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kI8}) {
      for (const int threads : {1, 2}) {
        Register({kernels, "9/3x64,decode@7500", dtype, 9, 3, 64, 1, 1, 7500, 30, threads});
        Register({kernels, "9/3x64,decode@512", dtype, 9, 3, 64, 1, 1, 512, 2, threads});
        Register({kernels, "9/3x64,32seq@160", dtype, 9, 3, 64, 32, 1, 160, 8, threads});
        Register({kernels, "9/3x64,prefill@512", dtype, 9, 3, 64, 1, 512, 512, 2, threads});
        Register({kernels, "32/8x64,decode@4096", dtype, 32, 8, 64, 1, 1, 4096, 16, threads});
        Register({kernels, "4/1x256,decode@4096", dtype, 4, 1, 256, 1, 1, 4096, 16, threads});
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace llm
