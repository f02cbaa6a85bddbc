// Four quants in a word, a byte each: loads, spread bits, look-ups, signs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace llm {

// The largest power of two that divides the size of a block, up to a word: where blocks lie one
// after the other from an aligned start, and arrays in them at multiples of it, so do these arrays.
template <typename Block>
constexpr int WordAlign() {
  return sizeof(Block) % 4 == 0 ? 4 : sizeof(Block) % 2 == 0 ? 2 : 1;
}

// Bytes p[0] to p[3], the first lowest.
template <typename Block>
__device__ __forceinline__ uint32_t LoadWord(const void* p) {
  if constexpr (WordAlign<Block>() == 4) {
    return *static_cast<const uint32_t*>(p);
  } else if constexpr (WordAlign<Block>() == 2) {
    const uint16_t* halves = static_cast<const uint16_t*>(p);
    return halves[0] | static_cast<uint32_t>(halves[1]) << 16;
  } else {
    const uint8_t* bytes = static_cast<const uint8_t*>(p);
    return bytes[0] | static_cast<uint32_t>(bytes[1]) << 8 | static_cast<uint32_t>(bytes[2]) << 16 |
           static_cast<uint32_t>(bytes[3]) << 24;
  }
}

// Bit i of `bits` becomes the lowest bit of byte i; higher ones are left out.
__device__ __forceinline__ uint32_t SpreadBits(uint32_t bits) {
  return ((bits & 0xf) * 0x00204081u) & 0x01010101u;
}

// A nibble for each byte, which holds no more: as __byte_perm selects by.
__device__ __forceinline__ uint32_t JoinNibbles(uint32_t bytes) {
  const uint32_t pairs = (bytes | bytes >> 4) & 0x00ff00ffu;
  return (pairs | pairs >> 8) & 0xffffu;
}

struct ByteTable {
  uint32_t words[4];
};
template <int kCount>
constexpr ByteTable TableOf(const int8_t (&values)[kCount]) {
  ByteTable table = {};
  for (int i = 0; i < kCount; ++i) {
    table.words[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(values[i])) << (i % 4 * 8);
  }
  return table;
}

// Bytes of `table` that the nibbles of `names`, a byte each, name.
__device__ __forceinline__ uint32_t LookUp16(const ByteTable& table, uint32_t names) {
  const uint32_t selector = JoinNibbles(names & 0x07070707u);
  const uint32_t low = __byte_perm(table.words[0], table.words[1], selector);
  const uint32_t high = __byte_perm(table.words[2], table.words[3], selector);
  const uint32_t upper = (names >> 3 & 0x01010101u) * 0xffu;
  return (low & ~upper) | (high & upper);
}

// Bytes, none of them 0, where bit i of `signs` is set negated.
__device__ __forceinline__ uint32_t ApplySigns(uint32_t bytes, uint32_t signs) {
  const uint32_t ones = SpreadBits(signs);
  return (bytes ^ ones * 0xffu) + ones;
}

}  // namespace llm
