// Speed of `linear` by backend, format, rows and form of the activations: multiply-adds count as
// two operations, bytes are those of the packed weight, read once a call.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/checks.h"
#include "kernels/kernel_table.h"
#include "src/base/thread_pool.h"
#include "src/tensor/buffer.h"

namespace llm {
namespace {

struct Shape {
  int64_t outputs;
  int64_t cols;
  int64_t copies;  // weights of this shape, used in turn: more than the caches hold when decoding
                   // from memory is meant
};

struct Case {
  const KernelTable* kernels;
  const WeightFormatInfo* info;
  const char* form;  // of the activations: int8, f32 or bf16
  int64_t rows;
  int threads;
  Shape shape;
};

void RunLinear(benchmark::State& state, const Case& c) {
  const auto pool = ThreadPool::Create({.num_threads = c.threads});
  const Shape& shape = c.shape;
  Allocator allocator;
  const size_t bytes = *c.kernels->packed_bytes(c.info->format, shape.outputs, shape.cols);
  const std::vector<uint8_t> source(
      static_cast<size_t>(shape.outputs * RowBytes(*c.info, shape.cols)), 0x11);
  std::vector<Buffer> weights;
  for (int64_t i = 0; i < shape.copies; ++i) {
    weights.push_back(*Buffer::Allocate(&allocator, bytes, "weight"));
    const PackedWeight weight = {c.info->format, shape.outputs, shape.cols, nullptr};
    if (!c.kernels->pack_rows({weight, 0, shape.outputs, source.data(), weights.back().data()})
             .ok())
      return;
  }
  const size_t elements = static_cast<size_t>(c.rows * shape.cols);
  std::vector<float> values(elements, 0.5f), scales(elements / 32, 0.01f),
      out(static_cast<size_t>(c.rows * shape.outputs));
  std::vector<int8_t> quants(elements, 7);
  std::vector<int16_t> sums(elements / 16, 7 * 16);
  Activations a;
  a.rows = c.rows;
  a.cols = shape.cols;
  if (std::strcmp(c.form, "int8") == 0) {
    a.quants = quants.data();
    a.scales = scales.data();
    a.sums = sums.data();
  } else {
    a.values = values.data();
  }
  size_t next = 0;
  for (auto _ : state) {
    const LinearOutput output = {{c.info->format, shape.outputs, shape.cols, weights[next].data()},
                                 nullptr,
                                 out.data(),
                                 shape.outputs};
    next = (next + 1) % weights.size();
    const LinearParams params = {a, absl::MakeConstSpan(&output, 1), c.form[0] == 'b'};
    if (!c.kernels->linear(params, {pool->get()}).ok()) return;
  }
  const double calls = static_cast<double>(state.iterations());
  const double operations = 2.0 * static_cast<double>(c.rows * shape.outputs * shape.cols);
  state.counters["GOP/s"] =
      benchmark::Counter(calls * operations * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] =
      benchmark::Counter(calls * static_cast<double>(bytes) * 1e-9, benchmark::Counter::kIsRate);
}

std::vector<const WeightFormatInfo*> Formats() {
  return {
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) \
  &GetWeightFormat(WeightFormat::k##name),
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
  };
}

void Register(const Case& c) {
  const std::string name = std::string("linear/") + c.kernels->name + "/" + c.info->name + "/" +
                           c.form + "/rows:" + std::to_string(c.rows) + "/" +
                           std::to_string(c.shape.outputs) + "x" + std::to_string(c.shape.cols) +
                           "/threads:" + std::to_string(c.threads);
  auto* registered = benchmark::RegisterBenchmark(
      name.c_str(), [c](benchmark::State& state) { RunLinear(state, c); });
  registered->MinTime(0.2);
  // One thread is measured by its processor time, which other programs disturb less.
  if (c.threads > 1) registered->UseRealTime();
}

const bool kRegistered = [] {
  for (const KernelTable* kernels : AvailableKernels()) {
    if (std::strcmp(kernels->name, "reference") == 0) continue;
    for (const WeightFormatInfo* info : Formats()) {
      for (const char* form : {"int8", "bf16", "f32"}) {
        if (form[0] == 'i' && !ReadsQuants(info->format)) continue;
        if (form[0] == 'b' && info->format != WeightFormat::kBF16) continue;
        for (const int threads : {1, 2}) {
          for (const int64_t rows : {1, 2, 4, 8, 32, 256}) {
            const int64_t copies = rows <= 8 ? 64 : 2;
            Register({kernels, info, form, rows, threads, {1536, 768, copies}});
          }
          for (const int64_t rows : {1, 32, 256}) {
            Register({kernels, info, form, rows, threads, {8192, 2048, 4}});
            Register({kernels, info, form, rows, threads, {2048, 8192, 4}});
          }
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace llm
