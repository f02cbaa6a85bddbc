// The integer weight formats as kernels read them: tile_formats.def pairs a way to read quants
// (tile_quants.h, tile_grids.h) with one to read scales (tile_scales.h). Those that hold floats:
// tile_floats.def, tile_floats.h.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/weight_tiles.h"

#if defined(LLM_CPU_ISA_AVX512)
#include "kernels/cpu/dot_avx512.h"
#elif defined(LLM_CPU_ISA_AVX2)
#include "kernels/cpu/dot_avx2.h"
#else
#include "kernels/cpu/dot_generic.h"
#endif

#include "kernels/cpu/tile_scales.h"
// Needs what they need.
#include "kernels/cpu/tile_floats.h"

namespace llm::LLM_CPU_ISA {

// `zero` 0 and a minimum, or a zero point and none, or HasZeros.
template <int zero, typename Quants, typename ScalesType>
struct TileFormat : Quants, ScalesType {
  static constexpr int kZero = zero;
  // About one group's share of the scales, to prefetch them.
  static constexpr int kScaleBytes = ScalesType::kBytes * kTileGroup / ScalesType::kCols;
};

}  // namespace llm::LLM_CPU_ISA
