// Linear layers in the shapes of Llama 3 8B. Decoding is to have 0.8 of the copy rate, a prompt 0.7
// of cuBLASLt's rate: "cublaslt_us" is its time in bf16 for the same shape, "own_type_us" in the
// weights' type, "batched_us" that of the layer with batch_invariant off.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dense_linear.h"
#include "kernels/quant/weight_format.h"
#include "src/base/status_macros.h"
#include "tests/bench/cuda_bench.h"
#include "tests/bench/cuda_library_bench.h"

namespace llm::bench {
namespace {

struct Shape {
  const char* name;
  int64_t outputs;
  int64_t cols;
};

constexpr Shape kShapes[] = {
    {"qkv", 6144, 4096}, {"o", 4096, 4096}, {"gate_up", 28672, 4096}, {"down", 4096, 14336}};
// Q4_Z is what AWQ and GPTQ checkpoints become, Q4_0 symmetric ones of GPTQ.
constexpr WeightFormat kFormats[] = {WeightFormat::kBF16,   WeightFormat::kF8_E4M3,
                                     WeightFormat::kQ8_F32, WeightFormat::kQ4_K,
                                     WeightFormat::kQ4_Z,   WeightFormat::kQ4_0};

struct Case {
  WeightFormat format;
  Shape shape;
  int64_t rows;

  int64_t weight_bytes() const {
    return shape.outputs * RowBytes(GetWeightFormat(format), shape.cols);
  }
  bool may_be_dense() const {
    return format == WeightFormat::kBF16 || format == WeightFormat::kF8_E4M3 ||
           format == WeightFormat::kQ8_F32;
  }
};

struct Operands {
  int64_t copies;  // of the weights, used in turn
  DeviceMemoryOwner weights, values, quants, scales, sums, out;
};

absl::StatusOr<Operands> Allocate(const Bench& bench, const Case& c) {
  const auto elements = static_cast<size_t>(c.rows * c.shape.cols);
  Operands o;
  o.copies = CopiesBeyondCaches(bench, c.weight_bytes());
  LLM_ASSIGN_OR_RETURN(o.weights,
                       Filled(static_cast<size_t>(o.copies * c.weight_bytes()), "weights"));
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

// The layer as an engine runs it, by own kernels or, with `dense`, by what that takes.
absl::StatusOr<Times> MeasureLayer(const Bench& bench, const Case& c, const Operands& o,
                                   DenseLinear* dense) {
  const auto run = [&](int call, LaunchStream stream) {
    const std::byte* weights = static_cast<std::byte*>(o.weights.get());
    LinearOutput output;
    output.weight = {c.format, c.shape.outputs, c.shape.cols,
                     weights + call % o.copies * c.weight_bytes()};
    output.weight.row_scales = true;  // all bytes are alike
    output.out = static_cast<float*>(o.out.get());
    output.out_stride = c.shape.outputs;
    const LinearParams params = {ActivationsOf(c, o), {&output, 1}, /*round_to_bf16=*/true};
    return cuda::Linear(params, {stream, bench.uploads, dense});
  };
  if (dense == nullptr) return MeasureInGraph(bench, run);
  return Measure(bench, [&](int call) { return run(call, bench.stream); });
}

absl::StatusOr<double> BatchedMicroseconds(const Bench& bench, const Case& c, const Operands& o) {
  const size_t bytes = DenseLinear::WorkspaceBytes({.max_rows = c.rows, .max_cols = c.shape.cols});
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner memory, AllocateDevice(bytes, "cuBLASLt"));
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<DenseLinear> dense,
                       DenseLinear::Create(static_cast<std::byte*>(memory.get()), bytes));
  LLM_ASSIGN_OR_RETURN(const Times times, MeasureLayer(bench, c, o, dense.get()));
  return times.median;
}

Figure FigureOf(const Bench& bench, const Case& c) {
  Figure figure;
  figure.what = absl::StrCat("linear ", GetWeightFormat(c.format).name);
  figure.shape = absl::StrCat(c.shape.name, " [", c.shape.outputs, ", ", c.shape.cols, "], ",
                              c.rows, c.rows == 1 ? " row" : " rows");
  const bool quants = ReadsQuants(c.format);
  const int64_t in = c.rows * c.shape.cols * (quants ? 1 : 4);
  figure.bytes = static_cast<double>(c.weight_bytes() + in + c.rows * c.shape.outputs * 4);
  figure.operations = 2.0 * static_cast<double>(c.rows * c.shape.outputs * c.shape.cols);
  figure.operations_per_s = quants ? bench.limits.int8_per_s : bench.limits.bf16_per_s;
  // Activations are two f16 there.
  if (c.format == WeightFormat::kF8_E4M3) figure.passes = 2;
  return figure;
}

void Add(const char* name, const absl::StatusOr<double>& us, Figure* figure) {
  if (us.ok()) figure->more.emplace_back(name, *us);
}

absl::Status RunCase(const Bench& bench, const Case& c, Figure* figure) {
  LLM_ASSIGN_OR_RETURN(const Operands operands, Allocate(bench, c));
  LLM_ASSIGN_OR_RETURN(const Times times, MeasureLayer(bench, c, operands, nullptr));
  const auto library = [&](DenseType type) {
    return LibraryMicroseconds(bench, type, c.rows, c.shape.outputs, c.shape.cols);
  };
  const absl::StatusOr<double> bf16 = library(DenseType::kBF16);
  Add("cublaslt_us", bf16, figure);
  if (bf16.ok()) figure->more.emplace_back("of_cublaslt", *bf16 / times.median);
  if (c.format == WeightFormat::kF8_E4M3) Add("own_type_us", library(DenseType::kF8E4M3), figure);
  if (c.format == WeightFormat::kQ8_F32) Add("own_type_us", library(DenseType::kInt8), figure);
  if (c.may_be_dense()) Add("batched_us", BatchedMicroseconds(bench, c, operands), figure);
  PrintFigure(bench, *figure, times);
  return absl::OkStatus();
}

bool RunRows(const Bench& bench, absl::Span<const int64_t> all_rows) {
  bool ok = true;
  for (const WeightFormat format : kFormats) {
    for (Shape shape : kShapes) {
      if (bench.quick) shape = {shape.name, 32, 256};
      for (const int64_t rows : all_rows) {
        const Case c = {format, shape, rows};
        Figure figure = FigureOf(bench, c);
        const absl::Status status = RunCase(bench, c, &figure);
        if (status.ok()) continue;
        ok = false;
        PrintFailure(figure, status);
      }
      if (bench.quick) break;
    }
  }
  return ok;
}

}  // namespace

bool BenchDecode(const Bench& bench) {
  return bench.quick ? RunRows(bench, {1, 3}) : RunRows(bench, {1, 8, 64, 256});
}

bool BenchPrefill(const Bench& bench) {
  return bench.quick ? RunRows(bench, {33}) : RunRows(bench, {512, 4096});
}

}  // namespace llm::bench
