// f32 activations times any weights: a piece of the weights is decoded to f32 (a panel), then
// multiplied.
//
// Floor: an fma of 16 lanes needs one broadcast load a row; two tiles share it on AVX-512 (16
// accumulators of 32 registers), the two halves of a tile on AVX2. Decoding, 2 to 5 operations a
// panel row, is shared by the task's rows.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/linear_kernel.h"
#include "kernels/cpu/tile_formats.h"

namespace llm::LLM_CPU_ISA {
namespace {

#if defined(LLM_CPU_ISA_AVX512)
constexpr int kPanelTiles = 2;
constexpr int kPanelRows = 8;  // activation rows at once
#else
constexpr int kPanelTiles = 1;
constexpr int kPanelRows = 4;
#endif
constexpr int kPanelCols = 128;  // 16 KiB of decoded weights stay in the first-level cache
constexpr int kPanelWidth = kPanelTiles * kPackTileRows;

// acc[r][t] += activation[r][k] * panel[k][t], k ascending. `activations` has row stride `stride`.
template <int kRows>
LLM_SIMD void MultiplyPanel(const float* panel, const float* activations, int64_t stride, int cols,
                            F32x16 (*acc)[kPanelTiles]) {
  for (int k = 0; k < cols; ++k) {
    F32x16 w[kPanelTiles];
    for (int t = 0; t < kPanelTiles; ++t) w[t] = Load(panel + k * kPanelWidth + t * kPackTileRows);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32x16 a = Set(activations[r * stride + k]);
      for (int t = 0; t < kPanelTiles; ++t) acc[r][t] = Fma(a, w[t], acc[r][t]);
    }
  }
}

// Columns [begin, begin + cols) of one step over the task's rows.
struct PanelRun {
  int64_t begin;
  int cols;
  int64_t output;      // first output of the panel
  int n[kPanelTiles];  // valid outputs of each tile
};

template <int kRows>
__attribute__((noinline)) void RunRows(const LinearTask& task, const PanelRun& run, int row,
                                       const float* panel) {
  F32x16 acc[kRows][kPanelTiles];
  float* out = task.out + row * task.out_stride + run.output;
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kPanelTiles; ++t) {
      acc[r][t] =
          run.begin > 0 ? Load(out + r * task.out_stride + t * kPackTileRows, run.n[t]) : Zero();
    }
  }
  MultiplyPanel<kRows>(panel, task.values + row * task.cols + run.begin, task.cols, run.cols, acc);
  const bool add_bias = task.bias != nullptr && run.begin + run.cols == task.cols;
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kPanelTiles; ++t) {
      if (add_bias) {
        acc[r][t] = Add(acc[r][t], Load(task.bias + run.output + t * kPackTileRows, run.n[t]));
      }
      Store(out + r * task.out_stride + t * kPackTileRows, acc[r][t], run.n[t]);
    }
  }
}

LLM_SIMD void RunPanel(const LinearTask& task, const PanelRun& run, const float* panel) {
  int row = 0;
  for (; row + kPanelRows <= task.num_rows; row += kPanelRows) {
    RunRows<kPanelRows>(task, run, row, panel);
  }
  if (kPanelRows > 4 && row + 4 <= task.num_rows) {
    RunRows<4>(task, run, row, panel);
    row += 4;
  }
  if (row + 2 <= task.num_rows) {
    RunRows<2>(task, run, row, panel);
    row += 2;
  }
  if (row < task.num_rows) RunRows<1>(task, run, row, panel);
}

// Bytes from a tile to its like in the next panel.
LLM_SIMD int64_t PrefetchDistance(const LinearTask& task) { return kPanelTiles * task.tile_bytes; }

// Each decoder writes columns [begin, begin + cols) of one tile to panel rows of stride
// kPanelWidth, and prefetches the like of a tile to come, a little with each step: a burst of
// prefetches would stall the loads.
template <typename Element, F32x16 (*kLoad)(const Element*)>
struct DecodeFloats {
  LLM_SIMD void Decode(const LinearTask& task, const uint8_t* tile, int64_t begin, int cols,
                       float* panel) {
    constexpr int kColBytes = kPackTileRows * static_cast<int>(sizeof(Element));
    const uint8_t* source = tile + begin * kColBytes;
    const uint8_t* ahead = source + PrefetchDistance(task);
    for (int k = 0; k < cols; ++k) {
      __builtin_prefetch(ahead + k * kColBytes);
      Store(panel + k * kPanelWidth,
            kLoad(reinterpret_cast<const Element*>(source + k * kColBytes)));
    }
  }
};
LLM_SIMD F32x16 LoadF32(const float* p) { return Load(p); }

// scale * (q - zero) + min for kLanes rows; exact but for the last operation, as in each format's
// Decode.
template <typename Format>
struct DecodeQuants {
  LLM_SIMD void Decode(const LinearTask& task, const uint8_t* tile, int64_t begin, int cols,
                       float* panel) {
    for (int g = 0; g < cols / kTileGroup; ++g) {
      const int64_t group = begin / kTileGroup + g;
      PrefetchGroup(tile + PrefetchDistance(task), task.scales_offset, group);
      for (int row = 0; row < kPackTileRows; row += kLanes) {
        Bytes w[kGroupSteps];
        const uint8_t* quants = tile + group * Format::kGroupBytes;
        Format::Unpack(quants, row, w);
        const GroupScales scales = Format::Scales(quants, tile + task.scales_offset, group, row);
        float* out = panel + g * kTileGroup * kPanelWidth + row;
        for (int s = 0; s < kGroupSteps; ++s)
          DecodeStep(w[s], scales, s, out + s * kStepCols * kPanelWidth);
      }
    }
  }

  LLM_SIMD void PrefetchGroup(const uint8_t* tile, int64_t scales_offset, int64_t group) {
    for (int i = 0; i < Format::kGroupBytes; i += 64)
      __builtin_prefetch(tile + group * Format::kGroupBytes + i);
    __builtin_prefetch(tile + scales_offset + group * Format::kScaleBytes);
  }

  LLM_SIMD void DecodeStep(Bytes w, const GroupScales& scales, int step, float* out) {
    const int half = Format::kGroup == 16 ? step / (kGroupSteps / 2) : 0;
    const Floats scale = scales.scale[half];
    const Floats zero = SetFloats(-static_cast<float>(Format::kZero));
    for (int j = 0; j < kStepCols; ++j) {
      const Floats q = ByteOfLanes(w, j);
      Floats value;
      if constexpr (Format::kHasMin) {
        value = FmaFloats(scale, q, scales.min[half]);
      } else {
        value = MulFloats(scale, AddFloats(q, zero));
      }
      StoreFloats(out + j * kPanelWidth, value, kLanes);
    }
  }
};

// The tile outside, columns inside: a tile's bytes are read in order, as the memory likes it.
template <typename Decoder>
void Run(const LinearTask& task) {
  alignas(64) float panel[kPanelCols * kPanelWidth];
  for (int64_t output = 0; output < task.num_outputs; output += kPanelWidth) {
    const uint8_t* tiles[kPanelTiles];
    PanelRun run = {};
    run.output = output;
    for (int t = 0; t < kPanelTiles; ++t) {
      const int64_t left = task.num_outputs - output - t * kPackTileRows;
      run.n[t] = left <= 0 ? 0 : left < kPackTileRows ? static_cast<int>(left) : kPackTileRows;
      // Past the last tile: its neighbour again, computed and not stored.
      tiles[t] = task.tiles + (output / kPackTileRows + (left > 0 ? t : 0)) * task.tile_bytes;
    }
    for (run.begin = 0; run.begin < task.cols; run.begin += kPanelCols) {
      const int64_t left = task.cols - run.begin;
      run.cols = left < kPanelCols ? static_cast<int>(left) : kPanelCols;
      for (int t = 0; t < kPanelTiles; ++t) {
        Decoder::Decode(task, tiles[t], run.begin, run.cols, panel + t * kPackTileRows);
      }
      RunPanel(task, run, panel);
    }
  }
}

}  // namespace

LinearTaskFn LinearF32(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return Run<DecodeFloats<float, LoadF32>>;
    case WeightFormat::kF16:
      return Run<DecodeFloats<uint16_t, LoadF16>>;
    case WeightFormat::kBF16:
      return Run<DecodeFloats<uint16_t, LoadBF16>>;
#define LLM_TILE_FORMAT(name, ...) \
  case WeightFormat::k##name:      \
    return Run<DecodeQuants<TileFormat<__VA_ARGS__>>>;
#include "kernels/cpu/tile_formats.def"
#undef LLM_TILE_FORMAT
  }
  return nullptr;
}

}  // namespace llm::LLM_CPU_ISA
