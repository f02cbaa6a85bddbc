// Linear layers of the CUDA backend on a GPU, in the shapes of Llama 3 8B: a JSON object a line.
// "of_copy_rate": bytes of weights over time, beside the rate of a copy within the device;
// "of_cublaslt": cuBLASLt's time in bf16 for the same shape over ours; "dense_us": the layer with
// batch_invariant off, where it differs.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <vector>

#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/quant/weight_format.h"
#include "src/base/status_macros.h"
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
constexpr WeightFormat kFormats[] = {WeightFormat::kBF16,   WeightFormat::kF8_E4M3,
                                     WeightFormat::kQ8_F32, WeightFormat::kQ8_0,
                                     WeightFormat::kQ4_0,   WeightFormat::kQ4_K};
// Weights used in turn: more than any cache holds.
constexpr int64_t kWeightsBytes = int64_t{512} << 20;

bool MayBeDense(WeightFormat format) {
  return format == WeightFormat::kBF16 || format == WeightFormat::kF8_E4M3 ||
         format == WeightFormat::kQ8_F32;
}

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

// A library's workspace, and it.
template <typename Library>
struct WithMemory {
  DeviceMemoryOwner memory;
  std::unique_ptr<Library> library;
};

absl::StatusOr<double> CublasLtMicroseconds(const Case& c, const Operands& o, int64_t copies,
                                            cudaStream_t stream) {
  constexpr size_t kWorkspaceBytes = size_t{64} << 20;
  WithMemory<CublasLt> cublaslt;
  LLM_ASSIGN_OR_RETURN(cublaslt.memory, AllocateDevice(kWorkspaceBytes, "cuBLASLt"));
  LLM_ASSIGN_OR_RETURN(cublaslt.library, CublasLt::Create(cublaslt.memory.get(), kWorkspaceBytes));
  const int64_t bytes = c.shape.outputs * c.shape.cols * 2;
  DenseProduct product = {.type = DenseType::kBF16,
                          .rows = c.rows,
                          .outputs = c.shape.outputs,
                          .cols = c.shape.cols,
                          .activations = o.values.get(),
                          .weight = nullptr,
                          .bias = nullptr,
                          .out = o.out.get(),
                          .out_stride = c.shape.outputs};
  const auto run = [&](int call) -> absl::Status {
    product.weight = static_cast<std::byte*>(o.weights.get()) + call % copies * bytes;
    LLM_ASSIGN_OR_RETURN(const bool done, cublaslt.library->Multiply(product, stream));
    return done ? absl::OkStatus() : absl::UnimplementedError("cuBLASLt: no algorithm");
  };
  LLM_ASSIGN_OR_RETURN(const Times times, Measure(stream, run));
  return times.median;
}

// The layer as an engine runs it, by own kernels or, with `dense`, by what that takes.
absl::StatusOr<Times> MeasureLayer(const Case& c, const Operands& o, int64_t copies,
                                   const CudaStream& stream) {
  const int64_t bytes = c.shape.outputs * RowBytes(GetWeightFormat(c.format), c.shape.cols);
  const auto run = [&](int call) {
    const std::byte* weights = static_cast<std::byte*>(o.weights.get());
    LinearOutput output;
    output.weight = {c.format, c.shape.outputs, c.shape.cols, weights + call % copies * bytes};
    output.weight.row_scales = true;  // all bytes are alike
    output.out = static_cast<float*>(o.out.get());
    output.out_stride = c.shape.outputs;
    const LinearParams params = {ActivationsOf(c, o), {&output, 1}, /*round_to_bf16=*/true};
    return cuda::Linear(params, stream);
  };
  return Measure(stream.stream.stream, run);
}

absl::StatusOr<double> DenseMicroseconds(const Case& c, const Operands& o, int64_t copies,
                                         cudaStream_t stream) {
  const size_t bytes = DenseLinear::WorkspaceBytes({.max_rows = c.rows, .max_cols = c.shape.cols});
  WithMemory<DenseLinear> dense;
  LLM_ASSIGN_OR_RETURN(dense.memory, AllocateDevice(bytes, "cuBLASLt"));
  LLM_ASSIGN_OR_RETURN(dense.library,
                       DenseLinear::Create(static_cast<std::byte*>(dense.memory.get()), bytes));
  LLM_ASSIGN_OR_RETURN(const Times times,
                       MeasureLayer(c, o, copies, {stream, nullptr, dense.library.get()}));
  return times.median;
}

absl::Status RunCase(const Case& c, double copy_rate, cudaStream_t stream) {
  const WeightFormatInfo& info = GetWeightFormat(c.format);
  const int64_t bytes = c.shape.outputs * RowBytes(info, c.shape.cols);
  const int64_t copies = kWeightsBytes / bytes + 1;
  LLM_ASSIGN_OR_RETURN(const Operands operands, Allocate(c, copies * bytes));
  LLM_ASSIGN_OR_RETURN(const Times times, MeasureLayer(c, operands, copies, {stream, nullptr}));
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
  if (MayBeDense(c.format)) {
    LLM_ASSIGN_OR_RETURN(const double dense, DenseMicroseconds(c, operands, copies, stream));
    std::printf(", \"dense_us\": %.2f", dense);
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
