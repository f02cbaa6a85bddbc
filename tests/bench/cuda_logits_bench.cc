// What is done with rows of logits, in the vocabulary of Llama 3: their measures, and a draw.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"
#include "tests/bench/cuda_bench.h"

namespace llm::bench {
namespace {

struct Case {
  bool draws = false;  // row_stats alone
  float temperature = 0;
  float top_p = 1;
  const char* how = "";
  int64_t rows = 1;
  int64_t cols = 128256;
};

struct Logits {
  DeviceMemoryOwner values, argmax, max, log_sum_exp, drawn;
};

// Rows alike, of a normal distribution: what top-p keeps is then some thousand ids.
absl::StatusOr<Logits> MakeLogits(const Case& c) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> row(static_cast<size_t>(c.cols));
  for (float& x : row) x = normal(random);
  const auto rows = static_cast<size_t>(c.rows);
  const size_t row_bytes = row.size() * sizeof(float);
  Logits logits;
  LLM_ASSIGN_OR_RETURN(logits.values, AllocateDevice(rows * row_bytes, "logits"));
  LLM_ASSIGN_OR_RETURN(logits.argmax, AllocateDevice(rows * sizeof(int32_t), "argmax"));
  LLM_ASSIGN_OR_RETURN(logits.max, AllocateDevice(rows * sizeof(float), "max"));
  LLM_ASSIGN_OR_RETURN(logits.log_sum_exp, AllocateDevice(rows * sizeof(float), "log_sum_exp"));
  LLM_ASSIGN_OR_RETURN(logits.drawn, AllocateDevice(rows * sizeof(TokenLogprob), "drawn"));
  for (size_t i = 0; i < rows; ++i) {
    void* to = static_cast<std::byte*>(logits.values.get()) + i * row_bytes;
    LLM_RETURN_IF_CUDA_ERROR("logits",
                             cudaMemcpy(to, row.data(), row_bytes, cudaMemcpyHostToDevice));
  }
  return logits;
}

absl::Status RunCase(const Bench& bench, const Case& c, const Figure& figure) {
  LLM_ASSIGN_OR_RETURN(const Logits logits, MakeLogits(c));
  RowStatsParams stats;
  stats.logits = static_cast<const float*>(logits.values.get());
  stats.rows = c.rows;
  stats.cols = c.cols;
  stats.argmax = static_cast<int32_t*>(logits.argmax.get());
  stats.max = static_cast<float*>(logits.max.get());
  stats.log_sum_exp = static_cast<float*>(logits.log_sum_exp.get());
  std::vector<RowDraw> draws(static_cast<size_t>(c.rows));
  for (size_t i = 0; i < draws.size(); ++i) {
    draws[i].seed = i;
    draws[i].row = static_cast<int32_t>(i);
    draws[i].temperature = c.temperature;
    draws[i].top_p = c.top_p;
  }
  SampleParams sample;
  sample.logits = static_cast<float*>(logits.values.get());
  sample.rows = c.rows;
  sample.cols = c.cols;
  sample.argmax = stats.argmax;
  sample.max = stats.max;
  sample.log_sum_exp = stats.log_sum_exp;
  sample.draws = draws;
  sample.drawn = static_cast<TokenLogprob*>(logits.drawn.get());
  LLM_RETURN_IF_ERROR(bench.uploads->Begin(/*ahead=*/false));
  LLM_RETURN_IF_ERROR(cuda::RowStats(stats, {bench.stream, bench.uploads, nullptr}));
  const auto run = [&](int, LaunchStream launches) {
    const CudaStream stream = {launches, bench.uploads, nullptr};
    return c.draws ? cuda::Sample(sample, stream) : cuda::RowStats(stats, stream);
  };
  LLM_ASSIGN_OR_RETURN(const Times times, MeasureInGraph(bench, run));
  PrintFigure(bench, figure, times);
  return absl::OkStatus();
}

}  // namespace

bool BenchLogits(const Bench& bench) {
  bool ok = true;
  for (const Case& kind : {Case{}, Case{.draws = true, .how = "greedy"},
                           Case{.draws = true, .temperature = 1, .how = "temperature"},
                           Case{.draws = true, .temperature = 1, .top_p = 0.9f, .how = "top-p"}}) {
    for (const int64_t rows : {1, 256}) {
      Case c = kind;
      c.rows = bench.quick ? std::min<int64_t>(rows, 2) : rows;
      if (bench.quick) c.cols = 5000;
      Figure figure;
      figure.what = c.draws ? "sample" : "row_stats";
      figure.shape = absl::StrCat(c.rows, c.rows == 1 ? " row of " : " rows of ", c.cols);
      if (c.draws) absl::StrAppend(&figure.shape, ", ", c.how);
      figure.bytes = 4.0 * static_cast<double>(c.rows * c.cols);
      const absl::Status status = RunCase(bench, c, figure);
      if (status.ok()) continue;
      ok = false;
      PrintFailure(figure, status);
    }
  }
  return ok;
}

}  // namespace llm::bench
