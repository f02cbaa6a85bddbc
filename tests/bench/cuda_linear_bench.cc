// Linear layers of the CUDA backend on a GPU, in the shapes of Llama 3 8B: a JSON object a line.
// "of_copy_rate": bytes of weights over time, beside the rate of a copy within the device;
// "of_cublaslt": cuBLASLt's time in bf16 for the same shape over ours.
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/quant/weight_format.h"
#include "src/base/status_macros.h"
#include "tests/bench/cublaslt_matmul.h"
#include "tests/bench/cuda_bench.h"

namespace llm::bench {
namespace {

struct Shape {
  const char* name;
  int64_t outputs;
  int64_t cols;
};

constexpr Shape kShapes[] = {
    {"qkv", 6144, 4096}, {"o", 4096, 4096}, {"gate_up", 28672, 4096}, {"down", 4096, 14336}};
constexpr int64_t kRows[] = {1, 8, 32, 256, 2048};
constexpr WeightFormat kFormats[] = {WeightFormat::kBF16, WeightFormat::kF8_E4M3,
                                     WeightFormat::kQ8_0, WeightFormat::kQ4_0, WeightFormat::kQ4_K};
// Weights used in turn: more than any cache holds.
constexpr int64_t kWeightsBytes = int64_t{512} << 20;

struct Operands {
  DeviceMemoryOwner weights, values, quants, scales, sums, out;
};

struct Case {
  WeightFormat format;
  Shape shape;
  int64_t rows;
};

absl::StatusOr<Operands> Allocate(const Case& c, int64_t weights_bytes) {
  const auto elements = static_cast<size_t>(c.rows * c.shape.cols);
  Operands o;
  LLM_ASSIGN_OR_RETURN(o.weights, Filled(static_cast<size_t>(weights_bytes), "weights"));
  LLM_ASSIGN_OR_RETURN(o.values, Filled(elements * sizeof(float), "values"));
  LLM_ASSIGN_OR_RETURN(o.quants, Filled(elements, "quants"));
  LLM_ASSIGN_OR_RETURN(o.scales, Filled(elements / kActivationGroup * sizeof(float), "scales"));
  LLM_ASSIGN_OR_RETURN(o.sums, Filled(elements / kActivationSumGroup * sizeof(int16_t), "sums"));
  const auto outputs = static_cast<size_t>(c.rows * c.shape.outputs);
  LLM_ASSIGN_OR_RETURN(o.out, Filled(outputs * sizeof(float), "outputs"));
  return o;
}

Activations ActivationsOf(const Case& c, const Operands& o) {
  Activations a;
  a.values = static_cast<float*>(o.values.get());
  a.quants = static_cast<int8_t*>(o.quants.get());
  a.scales = static_cast<float*>(o.scales.get());
  a.sums = static_cast<int16_t*>(o.sums.get());
  a.rows = c.rows;
  a.cols = c.shape.cols;
  return a;
}

absl::StatusOr<double> CublasLtMicroseconds(const Case& c, const Operands& o, int64_t copies,
                                            cudaStream_t stream) {
  LLM_ASSIGN_OR_RETURN(const auto matmul,
                       CublasLtMatmul::Create(c.rows, c.shape.outputs, c.shape.cols));
  const int64_t bytes = c.shape.outputs * c.shape.cols * 2;
  const auto run = [&](int call) {
    const std::byte* weights = static_cast<std::byte*>(o.weights.get());
    return matmul->Run(o.values.get(), weights + call % copies * bytes, o.out.get(), stream);
  };
  LLM_ASSIGN_OR_RETURN(const Times times, Measure(stream, run));
  return times.median;
}

absl::Status RunCase(const Case& c, double copy_rate, cudaStream_t stream) {
  const WeightFormatInfo& info = GetWeightFormat(c.format);
  const int64_t bytes = c.shape.outputs * RowBytes(info, c.shape.cols);
  const int64_t copies = kWeightsBytes / bytes + 1;
  LLM_ASSIGN_OR_RETURN(const Operands operands, Allocate(c, copies * bytes));
  const Activations activations = ActivationsOf(c, operands);
  const auto run = [&](int call) {
    const std::byte* weights = static_cast<std::byte*>(operands.weights.get());
    LinearOutput output;
    output.weight = {c.format, c.shape.outputs, c.shape.cols, weights + call % copies * bytes};
    output.out = static_cast<float*>(operands.out.get());
    output.out_stride = c.shape.outputs;
    LinearParams params = {activations, {&output, 1}};
    params.round_to_bf16 = c.format == WeightFormat::kBF16;
    return cuda::Linear(params, {stream, nullptr});
  };
  LLM_ASSIGN_OR_RETURN(const Times times, Measure(stream, run));
  const double operations = 2.0 * static_cast<double>(c.rows * c.shape.outputs * c.shape.cols);
  std::printf("{\"op\": \"linear\", \"format\": \"%s\", \"shape\": \"%s\", \"rows\": %" PRId64
              ", \"us\": %.2f, \"least_us\": %.2f, \"most_us\": %.2f, \"tflops\": %.2f, "
              "\"of_copy_rate\": %.3f",
              info.name, c.shape.name, c.rows, times.median, times.least, times.most,
              operations / times.median * 1e-6,
              static_cast<double>(bytes) / (times.median * 1e-6) / copy_rate);
  if (c.format == WeightFormat::kBF16) {
    LLM_ASSIGN_OR_RETURN(const double theirs, CublasLtMicroseconds(c, operands, copies, stream));
    std::printf(", \"cublaslt_us\": %.2f, \"of_cublaslt\": %.3f", theirs, theirs / times.median);
  }
  std::printf("}\n");
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status RunAll() {
  LLM_ASSIGN_OR_RETURN(const StreamOwner stream, CreateStream());
  LLM_ASSIGN_OR_RETURN(const double copy_rate, CopyRate(stream.get()));
  std::printf("{\"copy_gb_per_s\": %.1f}\n", copy_rate * 1e-9);
  for (WeightFormat format : kFormats) {
    for (const Shape& shape : kShapes) {
      for (int64_t rows : kRows) {
        const absl::Status status = RunCase({format, shape, rows}, copy_rate, stream.get());
        if (absl::IsUnimplemented(status)) continue;
        LLM_RETURN_IF_ERROR(status);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm::bench

int main() {
  const absl::Status status = llm::bench::RunAll();
  if (status.ok()) return 0;
  std::fprintf(stderr, "cuda_linear_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
