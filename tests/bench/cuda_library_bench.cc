// The library's workspace is twice what a step lends it: its rate, not ours, is asked for.
#include "tests/bench/cuda_library_bench.h"

#include <cstdio>

#include "absl/strings/str_join.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm::bench {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;
constexpr size_t kCopyBytes = size_t{1} << 30;
constexpr int64_t kLargest = 8192;  // rows, outputs and columns: 1.1 T of operations

int64_t ElementBytes(DenseType type) {
  return type == DenseType::kBF16 || type == DenseType::kF16 ? 2 : 1;
}

// Bytes read and written per second by a copy within the device that its caches do not hold.
absl::StatusOr<double> CopyRate(const Bench& bench) {
  const size_t bytes = bench.quick ? size_t{1} << 16 : kCopyBytes;
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner from, Filled(bytes, "copy"));
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner to, Filled(bytes, "copy"));
  const auto copy = [&](int) {
    return CudaStatus("copy", cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice,
                                              bench.stream));
  };
  LLM_ASSIGN_OR_RETURN(const Times times, Measure(bench, copy));
  return 2 * static_cast<double>(bytes) / (times.least * 1e-6);
}

double LargestRate(const Bench& bench, DenseType type) {
  const int64_t size = bench.quick ? 64 : kLargest;
  const absl::StatusOr<double> us = LibraryMicroseconds(bench, type, size, size, size);
  if (us.ok()) return 2.0 * static_cast<double>(size * size * size) / (*us * 1e-6);
  std::fprintf(stderr, "%s\n", std::string(us.status().message()).c_str());
  return 0;
}

}  // namespace

absl::StatusOr<double> LibraryMicroseconds(const Bench& bench, DenseType type, int64_t rows,
                                           int64_t outputs, int64_t cols) {
  const size_t workspace_bytes = bench.quick ? size_t{1} << 20 : kWorkspaceBytes;
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner workspace,
                       AllocateDevice(workspace_bytes, "cuBLASLt"));
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<CublasLt> library,
                       CublasLt::Create(workspace.get(), workspace_bytes));
  const int64_t bytes = outputs * cols * ElementBytes(type);
  const int64_t copies = CopiesBeyondCaches(bench, bytes);
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner weights,
                       Filled(static_cast<size_t>(copies * bytes), "weights"));
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner activations,
                       Filled(static_cast<size_t>(rows * cols * ElementBytes(type)), "rows"));
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner out,
                       AllocateDevice(static_cast<size_t>(rows * outputs) * 4, "outputs"));
  DenseProduct product = {.type = type,
                          .rows = rows,
                          .outputs = outputs,
                          .cols = cols,
                          .activations = activations.get(),
                          .weight = nullptr,
                          .bias = nullptr,
                          .out = out.get(),
                          .out_stride = outputs};
  const auto run = [&](int call) -> absl::Status {
    product.weight = static_cast<std::byte*>(weights.get()) + call % copies * bytes;
    if (library->Multiply(product, bench.stream)) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrJoin(library->TakeNotices(), "; "));
  };
  LLM_ASSIGN_OR_RETURN(const Times times, Measure(bench, run));
  return times.median;
}

absl::Status MeasureLimits(Bench* bench) {
  LLM_ASSIGN_OR_RETURN(bench->limits.copy_bytes_per_s, CopyRate(*bench));
  bench->limits.bf16_per_s = LargestRate(*bench, DenseType::kBF16);
  bench->limits.fp8_per_s = LargestRate(*bench, DenseType::kF8E4M3);
  bench->limits.int8_per_s = LargestRate(*bench, DenseType::kInt8);
  return absl::OkStatus();
}

}  // namespace llm::bench
