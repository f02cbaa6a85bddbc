// f32 activations times any weights. Those that are floats become f32 in registers, on pipes that
// the fmas leave free; integers are decoded first (a panel), which the task's rows share.
//
// Floor: the fmas, in linear_blocks.h. Decoding a panel takes 2 to 5 operations for 16 weights,
// beside the 32 fmas of 64 rows.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/linear_blocks.h"
#include "kernels/cpu/tile_formats.h"

namespace llm::LLM_CPU_ISA {
namespace {

LLM_SIMD F32x16 LoadF32(const float* p) { return Load(p); }

template <typename Element, F32x16 (*kLoad)(const Element*)>
struct FmaStep {
  using Weights = F32x16;
  static constexpr int kBytes = kPackTileRows * static_cast<int>(sizeof(Element));
  static constexpr int kFloats = 1;
  template <int kFloat>
  LLM_SIMD F32x16 LoadStep(const uint8_t* p) {
    return kLoad(reinterpret_cast<const Element*>(p));
  }
  LLM_SIMD F32x16 Broadcast(const float* a) { return Set(*a); }
  LLM_SIMD F32x16 Multiply(F32x16 a, F32x16 w, F32x16 acc) { return Fma(a, w, acc); }
};

// Weights that are floats, multiplied as they lie.
template <typename Element, F32x16 (*kLoad)(const Element*)>
struct Floats16 {
  using Step = FmaStep<Element, kLoad>;
  static constexpr int kStepCols = 1;
  static constexpr bool kUsesPanel = false;
  LLM_SIMD void Gather(const float* values, int cols, float* out) {
    std::memcpy(out, values, sizeof(float) * static_cast<size_t>(cols));
  }
};
using F32Weights = Floats16<float, LoadF32>;

// BF16, of which a tile holds pairs of columns.
struct BF16Weights : F32Weights {
  struct Step : FmaStep<float, LoadF32> {
    static constexpr int kFloats = 2;
    template <int kFloat>
    LLM_SIMD F32x16 LoadStep(const uint8_t* p) {
      const uint16_t* pairs = reinterpret_cast<const uint16_t*>(p);
      return kFloat == 0 ? LoadBF16Low(pairs) : LoadBF16High(pairs);
    }
  };
  static constexpr int kStepCols = 2;
  LLM_SIMD void Gather(const float* values, int cols, float* out) {
    F32Weights::Gather(values, cols, out);
    if (cols % 2 != 0) out[cols] = 0;
  }
};

// Others, decoded first. Decoder::Decode also asks for the like of a piece to come, a little with
// each step: a burst of prefetches would stall the loads.
template <typename Decoder>
struct Panel : F32Weights {
  static constexpr bool kUsesPanel = true;
  LLM_SIMD void Decode(const LinearTask& task, TilePlace from, TilePlace ahead, int steps,
                       float* panel) {
    Decoder::Decode(task, from, ahead, steps, panel);
  }
};

// scale * (q - zero) + min for kLanes rows; exact but for the last operation, as in each format's
// Decode.
template <typename Format>
struct DecodeQuants {
  LLM_SIMD void Decode(const LinearTask& task, TilePlace from, TilePlace ahead, int steps,
                       float* panel) {
    const uint8_t* scales_of_tile = from.tile + task.scales_offset;
    for (int g = 0; g < steps / kTileGroup; ++g) {
      const int64_t group = from.step / kTileGroup + g;
      PrefetchGroup(ahead.tile, task.scales_offset, ahead.step / kTileGroup + g);
      for (int row = 0; row < kPackTileRows; row += kLanes) {
        Bytes w[kGroupSteps];
        const uint8_t* quants = from.tile + group * Format::kGroupBytes;
        Format::Unpack(quants, row, w);
        const GroupScales scales = Format::Scales(quants, scales_of_tile, group, row);
        float* out = panel + g * kTileGroup * kPackTileRows + row;
        for (int s = 0; s < kGroupSteps; ++s)
          DecodeStep(w[s], scales, s, out + s * kStepCols * kPackTileRows);
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
      if constexpr (HasZeros<Format>) {
        value = MulFloats(scale, AddFloats(AddFloats(q, zero), scales.min[half]));
      } else if constexpr (Format::kHasMin) {
        value = FmaFloats(scale, q, scales.min[half]);
      } else {
        value = MulFloats(scale, AddFloats(q, zero));
      }
      StoreFloats(out + j * kPackTileRows, value);
    }
  }
};

// Floats in groups (tile_floats.h).
template <typename Format>
struct DecodeFloats {
  LLM_SIMD void Decode(const LinearTask& task, TilePlace from, TilePlace ahead, int steps,
                       float* panel) {
    const uint8_t* scales_of_tile = from.tile + task.scales_offset;
    for (int g = 0; g < steps / kTileGroup; ++g) {
      const int64_t group = from.step / kTileGroup + g;
      PrefetchGroup(ahead.tile, task.scales_offset, ahead.step / kTileGroup + g);
      const uint8_t* quants = from.tile + group * Format::kGroupBytes;
      float* out = panel + g * kTileGroup * kPackTileRows;
      for (int row = 0; row < kPackTileRows; row += kLanes) {
        Format::Decode(quants, scales_of_tile, group, row, out + row);
      }
    }
  }

  LLM_SIMD void PrefetchGroup(const uint8_t* tile, int64_t scales_offset, int64_t group) {
    for (int i = 0; i < Format::kGroupBytes; i += 64)
      __builtin_prefetch(tile + group * Format::kGroupBytes + i);
    if constexpr (Format::kBytes > 0) {
      constexpr int kGroups = Format::kCols / kTileGroup;
      __builtin_prefetch(tile + scales_offset + group / kGroups * Format::kBytes);
    }
  }
};

}  // namespace

LinearTaskFn LinearF32(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return RunSource<F32Weights>;
    case WeightFormat::kF16:
      return RunSource<Floats16<uint16_t, LoadF16>>;
    case WeightFormat::kBF16:
      return RunSource<BF16Weights>;
#define LLM_TILE_FORMAT(name, ...) \
  case WeightFormat::k##name:      \
    return RunSource<Panel<DecodeQuants<TileFormat<__VA_ARGS__>>>>;
#include "kernels/cpu/tile_formats.def"
#undef LLM_TILE_FORMAT
#define LLM_FLOAT_TILE_FORMAT(name, reader) \
  case WeightFormat::k##name:               \
    return RunSource<Panel<DecodeFloats<reader>>>;
#include "kernels/cpu/tile_floats.def"
#undef LLM_FLOAT_TILE_FORMAT
  }
  return nullptr;
}

}  // namespace llm::LLM_CPU_ISA
