// int8 activations times integer weights.
//
// For each group of 32 columns the weights of kLanes rows are unpacked into 8 registers, which then
// serve every activation row: 8 multiply-adds with a broadcast operand and one f32 update of the
// row's accumulator.
//
// Floor on AVX-512 VNNI (Zen 5: two 512-bit pipes for vpdpbusd and fma): a group of one row and one
// tile is 8 vpdpbusd + 3 fma/mul (2 without minimum) = 5.5 cycles for 512 multiply-adds: 93 a
// cycle, 73 % of the peak of 128. Unpacking, 12 simple operations on the other two pipes, is shared
// by 8 rows. Loads: 8 + 3 broadcasts, two a cycle: also 5.5. One row (decode) is bound by memory
// instead: 320 bytes of Q4_1 a group take 13 cycles at 25 bytes a cycle.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/linear_kernel.h"
#include "kernels/cpu/tile_formats.h"

namespace llm::LLM_CPU_ISA {
namespace {

// Columns are taken in blocks, so that the gathered activations of a task stay within 48 KiB
// (second-level cache, and little of a stack); the accumulators rest in `out` between blocks.
constexpr int kScratchBytes = 48 << 10;
constexpr int kMaxRowBlocks = kLinearTaskRows / kMaxRows;

// Activations of kRows rows and one group, gathered so that every address is one pointer plus a
// constant.
template <int kRows>
struct ActivationGroup {
  int8_t quants[kRows][kTileGroup];
  float scale[kRows];
  // Of the group (in [0]), or of each half where kGroup is 16: sum of quants, and -zero times it.
  float sum[2][kRows];
  int32_t correction[2][kRows];
};

// Rows from `count` on are zero: they are computed and not stored.
template <typename Format, int kRows>
LLM_SIMD void Gather(const LinearTask& task, int row_begin, int count, int64_t group_begin,
                     int num_groups, ActivationGroup<kRows>* groups) {
  const int64_t groups_a_row = task.cols / kTileGroup;
  if (count < kRows) std::memset(groups, 0, sizeof(*groups) * static_cast<size_t>(num_groups));
  for (int r = 0; r < count; ++r) {
    const int64_t begin = (row_begin + r) * groups_a_row + group_begin;
    for (int g = 0; g < num_groups; ++g) {
      const int64_t index = begin + g;
      std::memcpy(groups[g].quants[r], task.quants + index * kTileGroup, kTileGroup);
      const int32_t low = task.sums[2 * index];
      const int32_t high = task.sums[2 * index + 1];
      groups[g].scale[r] = task.scales[index];
      const int32_t first = Format::kGroup == 32 ? low + high : low;
      groups[g].sum[0][r] = static_cast<float>(first);
      groups[g].sum[1][r] = static_cast<float>(high);
      groups[g].correction[0][r] = -Format::kZero * first;
      groups[g].correction[1][r] = -Format::kZero * high;
    }
  }
}

template <typename Format, int kRows>
LLM_SIMD void AddGroup(const Bytes* w, const GroupScales& scales, const ActivationGroup<kRows>& a,
                       int r, Floats* acc) {
  constexpr int kSteps = Format::kGroup / kStepCols;
  for (int half = 0; half < kTileGroup / Format::kGroup; ++half) {
    const int32_t correction = Format::kZero != 0 ? a.correction[half][r] : 0;
    const Floats dot = ToFloats(Dot<Format::kMaxQuant, kSteps>(
        w + half * kSteps, a.quants[r] + half * Format::kGroup, correction));
    Floats term;
    if constexpr (Format::kHasMin) {
      term = FmaFloats(scales.scale[half], dot,
                       MulFloats(scales.min[half], SetFloats(a.sum[half][r])));
    } else {
      term = MulFloats(scales.scale[half], dot);
    }
    *acc = FmaFloats(SetFloats(a.scale[r]), term, *acc);
  }
}

// Rows [row, row + kLanes) of one tile; `out` and `bias` begin at the first of them, n of which
// exist.
struct TileSlice {
  const uint8_t* quants;
  const uint8_t* scales;
  int row;
  int n;
  int64_t prefetch;  // bytes from a group to its like in the tile that follows; 0: ask for nothing
  const float* bias;
  float* out;
};

// The hardware follows neither the step from a tile's quants to its scales nor slow readers, such
// as 8 rows are.
template <typename Format>
LLM_SIMD void PrefetchGroup(const TileSlice& slice, const uint8_t* quants, int64_t group) {
  for (int i = 0; i < Format::kGroupBytes; i += 64) __builtin_prefetch(quants + i);
  __builtin_prefetch(slice.scales + slice.prefetch + group * Format::kScaleBytes);
}

template <typename Format, int kRows>
LLM_SIMD void RunSlice(const LinearTask& task, const TileSlice& slice, int count,
                       int64_t group_begin, int num_groups, const ActivationGroup<kRows>* groups) {
  Floats acc[kRows];
  for (int r = 0; r < kRows; ++r) {
    acc[r] = group_begin > 0 && r < count ? LoadFloats(slice.out + r * task.out_stride, slice.n)
                                          : ZeroFloats();
  }
  const uint8_t* quants = slice.quants + group_begin * Format::kGroupBytes;
  for (int g = 0; g < num_groups; ++g, quants += Format::kGroupBytes) {
    if (slice.prefetch != 0) PrefetchGroup<Format>(slice, quants + slice.prefetch, group_begin + g);
    Bytes w[kGroupSteps];
    Format::Unpack(quants, slice.row, w);
    const GroupScales scales = Format::Scales(quants, slice.scales, group_begin + g, slice.row);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) AddGroup<Format, kRows>(w, scales, groups[g], r, &acc[r]);
  }
  const bool add_bias =
      slice.bias != nullptr && (group_begin + num_groups) * kTileGroup == task.cols;
  for (int r = 0; r < kRows; ++r) {
    if (r >= count) break;
    if (add_bias) acc[r] = AddFloats(acc[r], LoadFloats(slice.bias, slice.n));
    StoreFloats(slice.out + r * task.out_stride, acc[r], slice.n);
  }
}

template <typename Format, int kRows>
__attribute__((noinline)) void RunRows(const LinearTask& task, const TileSlice& slice,
                                       int row_begin, int count, int64_t group_begin,
                                       int num_groups, const void* groups) {
  TileSlice rows = slice;
  if (row_begin > 0) rows.prefetch = 0;
  rows.out += row_begin * task.out_stride;
  RunSlice<Format, kRows>(task, rows, count, group_begin, num_groups,
                          static_cast<const ActivationGroup<kRows>*>(groups));
}

template <typename Format>
struct RowBlock {
  int row_begin;
  int count;
  void* groups;  // ActivationGroup<kRows>[num_groups]
  decltype(&RunRows<Format, 1>) run;
};

template <typename Format, int kRows>
LLM_SIMD void PrepareAs(const LinearTask& task, int64_t group_begin, int num_groups,
                        RowBlock<Format>* block) {
  Gather<Format, kRows>(task, block->row_begin, block->count, group_begin, num_groups,
                        static_cast<ActivationGroup<kRows>*>(block->groups));
  block->run = RunRows<Format, kRows>;
}

// Picks the smallest kernel that holds the block's rows.
template <typename Format>
LLM_SIMD void Prepare(const LinearTask& task, int64_t group_begin, int num_groups,
                      RowBlock<Format>* block) {
  if (block->count == 1) return PrepareAs<Format, 1>(task, group_begin, num_groups, block);
  if (block->count == 2) return PrepareAs<Format, 2>(task, group_begin, num_groups, block);
  if (block->count <= 4) return PrepareAs<Format, 4>(task, group_begin, num_groups, block);
  if constexpr (kMaxRows > 4) PrepareAs<Format, kMaxRows>(task, group_begin, num_groups, block);
}

template <typename Format>
LLM_SIMD void RunTiles(const LinearTask& task, int64_t group_begin, int num_groups,
                       const RowBlock<Format>* blocks, int num_blocks) {
  for (int64_t output = 0; output < task.num_outputs; output += kLanes) {
    const uint8_t* tile = task.tiles + output / kPackTileRows * task.tile_bytes;
    const int64_t left = task.num_outputs - output;
    TileSlice slice;
    slice.quants = tile;
    slice.scales = tile + task.scales_offset;
    slice.row = static_cast<int>(output % kPackTileRows);
    slice.n = left < kLanes ? static_cast<int>(left) : kLanes;
    const uint8_t* next = left > kPackTileRows ? tile + task.tile_bytes : task.next_tile;
    slice.prefetch = slice.row == 0 && next != nullptr ? next - tile : 0;
    slice.bias = task.bias != nullptr ? task.bias + output : nullptr;
    slice.out = task.out + output;
    for (int b = 0; b < num_blocks; ++b) {
      const RowBlock<Format>& block = blocks[b];
      block.run(task, slice, block.row_begin, block.count, group_begin, num_groups, block.groups);
    }
  }
}

template <typename Format>
void Run(const LinearTask& task) {
  alignas(64) uint8_t scratch[kScratchBytes];
  RowBlock<Format> blocks[kMaxRowBlocks];
  const int num_blocks = (task.num_rows + kMaxRows - 1) / kMaxRows;
  const int group_bytes = task.num_rows == 1
                              ? static_cast<int>(sizeof(ActivationGroup<1>))
                              : num_blocks * static_cast<int>(sizeof(ActivationGroup<kMaxRows>));
  const int block_groups = kScratchBytes / group_bytes;
  for (int b = 0; b < num_blocks; ++b) {
    const int left = task.num_rows - b * kMaxRows;
    blocks[b] = {b * kMaxRows, left < kMaxRows ? left : kMaxRows,
                 scratch + b * block_groups * static_cast<int>(sizeof(ActivationGroup<kMaxRows>)),
                 nullptr};
  }
  const int64_t num_groups = task.cols / kTileGroup;
  for (int64_t begin = 0; begin < num_groups; begin += block_groups) {
    const int count =
        num_groups - begin < block_groups ? static_cast<int>(num_groups - begin) : block_groups;
    for (int b = 0; b < num_blocks; ++b) Prepare<Format>(task, begin, count, &blocks[b]);
    RunTiles<Format>(task, begin, count, blocks, num_blocks);
  }
}

}  // namespace

LinearTaskFn LinearInt8(WeightFormat format) {
  switch (format) {
#define LLM_TILE_FORMAT(name, ...) \
  case WeightFormat::k##name:      \
    return Run<TileFormat<__VA_ARGS__>>;
#include "kernels/cpu/tile_formats.def"
#undef LLM_TILE_FORMAT
    default:
      return nullptr;
  }
}

}  // namespace llm::LLM_CPU_ISA
