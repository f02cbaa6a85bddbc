// Lines of the output, each an object of JSON. What an emulated device gives says so in each.
#include <algorithm>
#include <cstdio>

#include "tests/bench/cuda_bench.h"

namespace llm::bench {
namespace {

#ifdef INLAY_REHEARSAL
constexpr char kBegin[] = "{\"rehearsal\": true, ";
#else
constexpr char kBegin[] = "{";
#endif

// Without what would end a string of JSON.
std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted.push_back(c == '"' || c == '\\' || c < ' ' ? '\'' : c);
  return quoted + "\"";
}

void PrintNames(const Figure& figure) {
  std::printf("%s\"what\": %s, \"shape\": %s", kBegin, Quoted(figure.what).c_str(),
              Quoted(figure.shape).c_str());
}

double Seconds(double amount, double per_second) {
  return per_second > 0 ? amount / per_second : 0;
}

}  // namespace

void PrintLimits(const Bench& bench) {
  const Limits& limits = bench.limits;
  std::printf(
      "%s\"copy_gb_per_s\": %.1f, \"cublaslt_bf16_tflops\": %.1f, \"cublaslt_fp8_tflops\": %.1f, "
      "\"cublaslt_int8_tops\": %.1f}\n",
      kBegin, limits.copy_bytes_per_s * 1e-9, limits.bf16_per_s * 1e-12, limits.fp8_per_s * 1e-12,
      limits.int8_per_s * 1e-12);
  std::fflush(stdout);
}

void PrintFigure(const Bench& bench, const Figure& figure, const Times& times) {
  const double copy_us = 1e6 * Seconds(figure.bytes, bench.limits.copy_bytes_per_s);
  const double operations_us =
      1e6 * Seconds(figure.passes * figure.operations, figure.operations_per_s);
  const double floor_us = std::max(copy_us, operations_us);
  PrintNames(figure);
  std::printf(
      ", \"bytes\": %.0f, \"operations\": %.0f, \"passes\": %d, \"us\": %.2f, \"least_us\": %.2f, "
      "\"most_us\": %.2f, \"floor_us\": %.2f, \"of_floor\": %.3f, \"of_copy_rate\": %.3f",
      figure.bytes, figure.operations, figure.passes, times.median, times.least, times.most,
      floor_us, floor_us / times.median, copy_us / times.median);
  for (const auto& [name, value] : figure.more) std::printf(", \"%s\": %.3f", name.c_str(), value);
  std::printf("}\n");
  std::fflush(stdout);
}

void PrintFailure(const Figure& figure, const absl::Status& status) {
  PrintNames(figure);
  std::printf(", \"error\": %s}\n", Quoted(status.message()).c_str());
  std::fflush(stdout);
}

}  // namespace llm::bench
