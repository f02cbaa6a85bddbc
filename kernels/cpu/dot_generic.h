// Integer dot products for 4 weight rows at once in plain C++. Included by tile_formats.h.
#pragma once

#include <cstring>

namespace llm::LLM_CPU_ISA {

inline constexpr int kLanes = 4;  // weight rows handled at once: what a 16-byte register holds
inline constexpr int kMaxRows = 4;

struct Floats {
  float v[kLanes];
};
struct Words {  // one i32 a lane
  int32_t v[kLanes];
};
struct Bytes {  // four u8 a lane
  uint8_t v[4 * kLanes];
};

LLM_SIMD Bytes LoadBytes(const uint8_t* p) {
  Bytes r;
  std::memcpy(r.v, p, sizeof(r.v));
  return r;
}
LLM_SIMD void StoreBytes(uint8_t* p, Bytes a) { std::memcpy(p, a.v, sizeof(a.v)); }
LLM_SIMD Bytes Or(Bytes a, Bytes b) {
  for (int i = 0; i < 4 * kLanes; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] | b.v[i]);
  return a;
}
template <int n>
LLM_SIMD Bytes ShiftLeftAnd(Bytes a, int mask) {
  for (int i = 0; i < 4 * kLanes; ++i) a.v[i] = static_cast<uint8_t>((a.v[i] << n) & mask);
  return a;
}
template <int n>
LLM_SIMD Bytes ShiftRightAnd(Bytes a, int mask) {
  for (int i = 0; i < 4 * kLanes; ++i) a.v[i] = static_cast<uint8_t>((a.v[i] >> n) & mask);
  return a;
}

#define LLM_LANES for (int i = 0; i < kLanes; ++i)
LLM_SIMD Floats SetFloats(float x) {
  Floats r;
  LLM_LANES r.v[i] = x;
  return r;
}
LLM_SIMD Floats ZeroFloats() { return SetFloats(0.0f); }
LLM_SIMD Floats MulFloats(Floats a, Floats b) {
  LLM_LANES a.v[i] *= b.v[i];
  return a;
}
LLM_SIMD Floats AddFloats(Floats a, Floats b) {
  LLM_LANES a.v[i] += b.v[i];
  return a;
}
LLM_SIMD Floats FmaFloats(Floats a, Floats b, Floats c) {
  LLM_LANES a.v[i] = a.v[i] * b.v[i] + c.v[i];
  return a;
}
LLM_SIMD Floats NegFloats(Floats a) {
  LLM_LANES a.v[i] = -a.v[i];
  return a;
}
LLM_SIMD Floats ToFloats(Words a) {
  Floats r;
  LLM_LANES r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
LLM_SIMD Floats LoadFloats(const float* p, int n) {
  Floats r;
  LLM_LANES r.v[i] = i < n ? p[i] : 0.0f;
  return r;
}
LLM_SIMD Floats LoadFloats(const float* p) {
  Floats r;
  LLM_LANES r.v[i] = p[i];
  return r;
}
LLM_SIMD void StoreFloats(float* p, Floats a) { LLM_LANES p[i] = a.v[i]; }
LLM_SIMD void StoreFloats(float* p, Floats a, int n) { LLM_LANES if (i < n) p[i] = a.v[i]; }
LLM_SIMD Floats LoadHalves(const uint8_t* p) {
  uint16_t halves[kLanes];
  std::memcpy(halves, p, sizeof(halves));
  Floats r;
  LLM_LANES r.v[i] = HalfToFloat(halves[i]);
  return r;
}
LLM_SIMD Floats LoadUnsignedBytes(const uint8_t* p) {
  Floats r;
  LLM_LANES r.v[i] = static_cast<float>(p[i]);
  return r;
}
LLM_SIMD Floats LoadSignedBytes(const uint8_t* p) {
  Floats r;
  LLM_LANES r.v[i] = static_cast<float>(static_cast<int8_t>(p[i]));
  return r;
}

// The same lanes as four bytes each, or as one word.
LLM_SIMD Words AsWords(Bytes a) {
  Words r;
  std::memcpy(r.v, a.v, sizeof(r.v));
  return r;
}
LLM_SIMD Bytes AsBytes(Words a) {
  Bytes r;
  std::memcpy(r.v, a.v, sizeof(r.v));
  return r;
}
// One unsigned byte or short a lane.
LLM_SIMD Words LoadByteWords(const uint8_t* p) {
  Words r;
  LLM_LANES r.v[i] = p[i];
  return r;
}
LLM_SIMD Words LoadShortWords(const uint8_t* p) {
  Words r;
  LLM_LANES r.v[i] = p[2 * i] | p[2 * i + 1] << 8;
  return r;
}
LLM_SIMD Words SetWords(int32_t x) {
  Words r;
  LLM_LANES r.v[i] = x;
  return r;
}
LLM_SIMD Words And(Words a, int32_t mask) {
  LLM_LANES a.v[i] &= mask;
  return a;
}
LLM_SIMD Words Or(Words a, Words b) {
  LLM_LANES a.v[i] |= b.v[i];
  return a;
}
LLM_SIMD Words Xor(Words a, Words b) {
  LLM_LANES a.v[i] ^= b.v[i];
  return a;
}
LLM_SIMD Words Sub(Words a, Words b) {
  LLM_LANES a.v[i] -= b.v[i];
  return a;
}
LLM_SIMD Words ShiftRight(Words a, int n) {
  LLM_LANES a.v[i] = static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) >> n);
  return a;
}
LLM_SIMD Words ShiftLeft(Words a, int n) {
  LLM_LANES a.v[i] = static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << n);
  return a;
}
// table[index] of both halves of each lane. REQUIRES: they exist. kSize: points of the table.
template <int kSize>
LLM_SIMD Words LookupPairs(const uint16_t* table, Words index) {
  LLM_LANES {
    const uint32_t both = static_cast<uint32_t>(index.v[i]);
    index.v[i] = static_cast<int32_t>(table[both & 0xffff] | uint32_t{table[both >> 16]} << 16);
  }
  return index;
}
// The low, or high, halves of the lanes of a and of b.
LLM_SIMD Words JoinLow(Words a, Words b) { return Or(And(a, 0xffff), ShiftLeft(b, 16)); }
LLM_SIMD Words JoinHigh(Words a, Words b) { return Or(ShiftRight(a, 16), And(b, -0x10000)); }
// The bits of each lane as an f32.
LLM_SIMD Floats AsFloats(Words a) {
  Floats r;
  std::memcpy(r.v, a.v, sizeof(r.v));
  return r;
}
LLM_SIMD Words And(Words a, Words b) {
  LLM_LANES a.v[i] &= b.v[i];
  return a;
}
// kLanes E4M3 numbers, any code (e4m3.h), divided by 256.
LLM_SIMD Floats LoadE4M3Of256th(const uint8_t* p) {
  Floats r;
  LLM_LANES r.v[i] = HalfToFloat(static_cast<uint16_t>((p[i] & 0x7f) << 7 | (p[i] & 0x80) << 8));
  return r;
}
// The low half of each lane as an f16.
LLM_SIMD Floats HalvesOf(Words a) {
  Floats r;
  LLM_LANES r.v[i] = HalfToFloat(static_cast<uint16_t>(a.v[i]));
  return r;
}

// table[index] of each byte. REQUIRES: index < 16.
LLM_SIMD Bytes Lookup(const uint8_t* table, Bytes index) {
  for (uint8_t& byte : index.v) byte = table[byte];
  return index;
}
LLM_SIMD Bytes Add(Bytes a, Bytes b) {  // modulo 256
  for (int i = 0; i < 4 * kLanes; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] + b.v[i]);
  return a;
}
LLM_SIMD Bytes SetBytes(int x) {
  Bytes r;
  for (uint8_t& byte : r.v) byte = static_cast<uint8_t>(x);
  return r;
}
// sum - x where bit n of the byte of `signs` is set, else x.
template <int n>
LLM_SIMD Bytes MirrorWhere(Bytes signs, int sum, Bytes x) {
  for (int i = 0; i < 4 * kLanes; ++i) {
    if ((signs.v[i] >> n) & 1) x.v[i] = static_cast<uint8_t>(sum - x.v[i]);
  }
  return x;
}
// 3 x / 256: the first digit of x / 256 in base 3.
LLM_SIMD Bytes FirstDigit(Bytes a) {
  for (uint8_t& byte : a.v) byte = static_cast<uint8_t>(byte * 3 >> 8);
  return a;
}
// Numbers of 5 bits of rows [row, row + kLanes), four each: byte b of a tile's 64 has its low 4
// bits in nibble b / 32 of byte b % 32, its top bit in bit b % 8 of byte 32 + b / 8.
LLM_SIMD Bytes LoadFiveBits(const uint8_t* p, int row) {
  Bytes r;
  for (int i = 0; i < 4 * kLanes; ++i) {
    const int b = 4 * row + i;
    const int low = (p[b % 32] >> (b / 32 * 4)) & 0xf;
    r.v[i] = static_cast<uint8_t>(low | ((p[32 + b / 8] >> (b % 8)) & 1) << 4);
  }
  return r;
}

// Byte j of each lane, as f32.
LLM_SIMD Floats ByteOfLanes(Bytes a, int j) {
  Floats r;
  LLM_LANES r.v[i] = static_cast<float>(a.v[4 * i + j]);
  return r;
}

// correction + sum over kSteps steps of w[s] (u8) x the step's four activations. Exact.
template <int kMaxQuant, int kSteps>
LLM_SIMD Words Dot(const Bytes* w, const int8_t* activations, int32_t correction) {
  Words sum;
  LLM_LANES sum.v[i] = correction;
  for (int s = 0; s < kSteps; ++s) {
    const int8_t* a = activations + 4 * s;
    LLM_LANES {
      const uint8_t* q = w[s].v + 4 * i;
      sum.v[i] += q[0] * a[0] + q[1] * a[1] + q[2] * a[2] + q[3] * a[3];
    }
  }
  return sum;
}
#undef LLM_LANES

}  // namespace llm::LLM_CPU_ISA
