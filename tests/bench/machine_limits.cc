// What this machine can do at most, as JSON: read bandwidth, int8 multiply-add rate, f32 FMA rate.
//
// Usage: machine-limits [threads]. The shares of the limit that compare.py prints divide by these.
// Each rate is the best of several rounds, since a limit is what nothing exceeds; an operation is
// one multiplication or one addition.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "limit_kernels.h"
#include "spin_start.h"

namespace {

using bench::LimitKernel;

constexpr size_t kReadBytes = size_t{2} << 30;  // far beyond any cache
constexpr int kRounds = 5;

// Seconds of the slowest of `threads` threads that start together; the best of kRounds.
double BestSeconds(unsigned threads, const std::function<void(unsigned)>& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double seconds = bench::RunTogether(threads, work);
    if (seconds < best) best = seconds;
  }
  return best;
}

// Gigabytes a second. Each thread fills its own part first, so that pages lie where they are read.
double ReadRate(unsigned threads, const LimitKernel& kernel, std::vector<uint64_t*>* parts) {
  const size_t words = kReadBytes / sizeof(uint64_t) / threads / 1024 * 1024;
  if (parts->empty()) {
    parts->resize(threads);
    bench::RunTogether(threads, [&](unsigned thread) {
      uint64_t* part = new uint64_t[words];
      for (size_t i = 0; i < words; ++i) part[i] = i;
      (*parts)[thread] = part;
    });
  }
  const double seconds =
      BestSeconds(threads, [&](unsigned thread) { kernel.read((*parts)[thread], words); });
  return static_cast<double>(words * threads * sizeof(uint64_t)) / seconds / 1e9;
}

// Giga-operations a second of a kernel that does `ops` operations a repetition.
double OpRate(unsigned threads, void (*run)(uint64_t), uint64_t ops) {
  constexpr uint64_t kRepetitions = 4'000'000;  // some 20 ms
  const double seconds = BestSeconds(threads, [&](unsigned) { run(kRepetitions); });
  return static_cast<double>(kRepetitions * ops) * threads / seconds / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned threads = std::thread::hardware_concurrency();
  if (argc > 1) threads = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  if (threads == 0 || threads > 1024) {
    std::fprintf(stderr, "usage: machine-limits [threads]\n");
    return 2;
  }
  double best_read = 0, best_int8 = 0, best_f32 = 0;
  std::string lines;
  std::vector<uint64_t*> parts;
  for (const LimitKernel& kernel : bench::LimitKernels()) {
    const double read = ReadRate(threads, kernel, &parts);
    const double int8 = OpRate(threads, kernel.int8, kernel.int8_ops);
    const double f32 = OpRate(threads, kernel.f32, kernel.f32_ops);
    best_read = std::max(best_read, read);
    best_int8 = std::max(best_int8, int8);
    best_f32 = std::max(best_f32, f32);
    char line[256];
    std::snprintf(line, sizeof line,
                  "%s\"%s\": {\"read_gb_per_s\": %.2f, \"int8_gop_per_s\": %.1f, "
                  "\"f32_gflop_per_s\": %.1f}",
                  lines.empty() ? "" : ", ", kernel.name, read, int8, f32);
    lines += line;
  }
  for (uint64_t* part : parts) delete[] part;
  std::printf(
      "{\"threads\": %u, \"read_gb_per_s\": %.2f, \"int8_gop_per_s\": %.1f, \"f32_gflop_per_s\": "
      "%.1f, \"by_isa\": {%s}}\n",
      threads, best_read, best_int8, best_f32, lines.c_str());
  return 0;
}
