// Operations of a whole warp: shuffles, votes, ldmatrix, mma; and atomics.
#pragma once

#include <cstdint>
#include <cstring>

#include "tests/cuda_on_cpu/block.h"

namespace llm::cuda_on_cpu {

enum class ShuffleMode { kIndex, kXor, kUp, kDown };

// As shfl.sync of the PTX ISA: lanes whose source lies outside of their segment keep their value.
uint64_t ShuffleBits(ShuffleMode mode, uint32_t mask, uint64_t bits, int lane, int width);

template <typename T>
T Shuffle(ShuffleMode mode, uint32_t mask, T value, int lane, int width) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = ShuffleBits(mode, mask, bits, lane, width);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

uint32_t Ballot(uint32_t mask, bool predicate);

int AtomicAdd(int* address, int value);
float AtomicAdd(float* address, float value);
unsigned long long AtomicAdd(unsigned long long* address, unsigned long long value);

// ldmatrix.sync.aligned.m8n8.x<count>.shared.b16: lanes 8 i to 8 i + 7 give the rows of matrix i;
// a lane's register i holds two elements of row lane / 4, of column lane / 4 with `transpose`.
void LoadMatrix(int count, bool transpose, const void* row, uint32_t* registers);

enum class MmaType { kF16, kBF16 };

// mma.sync.aligned.m16n8k16.row.col.f32.{f16,bf16}.{f16,bf16}.f32: d += a b. The order of additions
// is the hardware's secret: MmaOrder names the one in use.
enum class MmaOrder { kAscending, kPairs };
void set_mma_order(MmaOrder order);
void Mma(MmaType type, float* d, const uint32_t* a, const uint32_t* b);

// mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32, in the same orders. No kernel has a use for
// it yet: f32 activations and queries have more bits than it takes.
void MmaE4M3(float* d, const uint32_t* a, const uint32_t* b);

// mma.sync.aligned.m16n8k<depth>.row.col.s32.s8.s8.s32, depth 16 or 32. Sums wrap around.
void MmaS8(int depth, int* d, const uint32_t* a, const uint32_t* b);

}  // namespace llm::cuda_on_cpu
