// Attention over keys and values that no cache holds, in the heads of Llama 3 8B and, for MLA, of
// DeepSeek V3 (one latent head of 576, read by 128).
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/attention.h"
#include "kernels/cuda/cuda_kernels.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "tests/bench/cuda_bench.h"

namespace llm::bench {
namespace {

struct Case {
  DType dtype = DType::kF16;
  int sequences = 1;
  int tokens = 1;  // of each sequence: the last ones of its context
  int context = 0;
  int num_heads = 32;
  int num_kv_heads = 8;
  int head_dim = 128;

  int64_t all_tokens() const { return int64_t{sequences} * tokens; }
  int64_t row_floats() const { return int64_t{num_heads} * head_dim; }
  KvLayout layout() const {
    return {.dtype = dtype, .num_kv_heads = num_kv_heads, .head_dim = head_dim};
  }
  int blocks_of_sequence() const { return CeilDiv(context, layout().block_size); }
  int64_t kv_bytes() const {
    return int64_t{sequences} * blocks_of_sequence() * static_cast<int64_t>(layout().block_bytes());
  }
};

// As kernels/README.md counts them: f32 queries and weights are two f16 or three bf16.
int Passes(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF32 ? 3 : 2; }

Figure FigureOf(const Bench& bench, const Case& c) {
  Figure figure;
  figure.what = absl::StrCat("attention ", DTypeName(c.dtype));
  if (c.tokens > 1) {
    figure.shape = absl::StrCat("prefill ", c.tokens, " tokens");
  } else {
    figure.shape =
        absl::StrCat(c.sequences, c.sequences == 1 ? " token, " : " tokens, ", c.context, " keys");
  }
  if (c.num_kv_heads == 1) absl::StrAppend(&figure.shape, ", 128 heads of 576");
  const double tokens = static_cast<double>(c.all_tokens());
  const double rows = tokens * static_cast<double>(c.row_floats());
  figure.bytes = static_cast<double>(c.kv_bytes()) + 2 * 4 * rows;
  const double keys = c.context - (c.tokens - 1) / 2.0;  // that a token sees on average
  figure.operations = 4 * rows * keys;
  figure.operations_per_s = bench.limits.bf16_per_s;
  figure.passes = Passes(c.dtype);
  return figure;
}

// The host's arrays of a step.
struct Batch {
  explicit Batch(const Case& c) {
    for (int i = 0; i <= c.sequences; ++i) query_start.push_back(i * c.tokens);
    context_lens.assign(static_cast<size_t>(c.sequences), c.context);
    const int blocks = c.sequences * c.blocks_of_sequence();
    // Neighbours of a sequence lie apart, as they do after a while: the stride is odd and prime to
    // most counts; where it is not, some blocks are read twice.
    for (int64_t i = 0; i < blocks; ++i) {
      block_table.push_back(static_cast<int32_t>(i * 7919 % blocks));
    }
  }
  std::vector<int32_t> query_start, context_lens, block_table;
};

absl::Status RunCase(const Bench& bench, const Case& c, const Figure& figure) {
  const Batch batch(c);
  const int64_t copies = CopiesBeyondCaches(bench, c.kv_bytes());
  const auto floats = static_cast<size_t>(c.all_tokens() * c.row_floats());
  const size_t workspace_bytes =
      cuda::AttentionWorkspaceBytes({.max_tokens = static_cast<int>(c.all_tokens()),
                                     .max_sequences = c.sequences,
                                     .max_context = c.context,
                                     .num_heads = c.num_heads,
                                     .head_dim = c.head_dim});
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner kv,
                       Filled(static_cast<size_t>(copies * c.kv_bytes()), "keys and values"));
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner q, Filled(floats * sizeof(float), "queries"));
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner out, Filled(floats * sizeof(float), "outputs"));
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner workspace, Filled(workspace_bytes, "workspace"));
  AttentionParams params;
  params.q = static_cast<const float*>(q.get());
  params.q_stride = c.row_floats();
  params.num_heads = c.num_heads;
  params.query_start = batch.query_start;
  params.context_lens = batch.context_lens;
  params.block_table = batch.block_table.data();
  params.max_blocks = c.blocks_of_sequence();
  params.kv.layout = c.layout();
  params.kv.num_blocks = c.sequences * c.blocks_of_sequence();
  params.scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  params.output.values = static_cast<float*>(out.get());
  params.output.rows = c.all_tokens();
  params.output.cols = c.row_floats();
  params.workspace = static_cast<std::byte*>(workspace.get());
  params.workspace_bytes = workspace_bytes;
  const auto run = [&](int call, LaunchStream stream) {
    params.kv.base = static_cast<std::byte*>(kv.get()) + call % copies * c.kv_bytes();
    return cuda::Attention(params, {stream, bench.uploads, nullptr});
  };
  LLM_RETURN_IF_ERROR(bench.uploads->Begin(/*ahead=*/false));
  LLM_ASSIGN_OR_RETURN(const Times times, MeasureInGraph(bench, run));
  PrintFigure(bench, figure, times);
  return absl::OkStatus();
}

std::vector<Case> Cases(bool quick) {
  const auto mla = [](Case c) {
    c.num_heads = 128, c.num_kv_heads = 1, c.head_dim = 576;
    return c;
  };
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kI8}) {
    if (quick) {
      cases.push_back({.dtype = dtype, .sequences = 2, .context = 40});
      continue;
    }
    cases.push_back({.dtype = dtype, .sequences = 1, .context = 8192});
    cases.push_back({.dtype = dtype, .sequences = 8, .context = 8192});
    cases.push_back({.dtype = dtype, .sequences = 64, .context = 2048});
    cases.push_back({.dtype = dtype, .sequences = 256, .context = 1024});
    for (const int tokens : {512, 4096}) {
      cases.push_back({.dtype = dtype, .tokens = tokens, .context = tokens});
    }
  }
  if (quick) {
    cases.push_back({.tokens = 20, .context = 20});
    cases.push_back(mla({.dtype = DType::kBF16, .sequences = 1, .context = 20}));
    return cases;
  }
  cases.push_back(mla({.dtype = DType::kBF16, .sequences = 1, .context = 8192}));
  cases.push_back(mla({.dtype = DType::kBF16, .sequences = 64, .context = 2048}));
  cases.push_back(mla({.dtype = DType::kBF16, .tokens = 4096, .context = 4096}));
  return cases;
}

}  // namespace

bool BenchAttention(const Bench& bench) {
  bool ok = true;
  for (const Case& c : Cases(bench.quick)) {
    const Figure figure = FigureOf(bench, c);
    const absl::Status status = RunCase(bench, c, figure);
    if (status.ok()) continue;
    ok = false;
    PrintFailure(figure, status);
  }
  return ok;
}

}  // namespace llm::bench
