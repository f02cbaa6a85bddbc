// Integer dot products for 8 weight rows at once, on AVX2. Included by tile_formats.h.
#pragma once

#include <immintrin.h>

#include <cstring>

namespace llm::LLM_CPU_ISA {

inline constexpr int kLanes = 8;  // weight rows handled at once: half a tile
inline constexpr int kMaxRows =
    4;  // activation rows: 4 accumulators and 8 unpacked weights of 16 registers

struct Floats {
  __m256 v;
};
struct Words {  // one i32 a lane
  __m256i v;
};
struct Bytes {  // four u8 a lane
  __m256i v;
};

LLM_SIMD Bytes LoadBytes(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
LLM_SIMD void StoreBytes(uint8_t* p, Bytes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
}
LLM_SIMD Bytes Or(Bytes a, Bytes b) { return {_mm256_or_si256(a.v, b.v)}; }
// (a << n) & mask or (a >> n) & mask in each byte. REQUIRES: the mask keeps no bit that came from
// another byte.
template <int n>
LLM_SIMD Bytes ShiftLeftAnd(Bytes a, int mask) {
  return {_mm256_and_si256(_mm256_slli_epi16(a.v, n), _mm256_set1_epi8(static_cast<char>(mask)))};
}
template <int n>
LLM_SIMD Bytes ShiftRightAnd(Bytes a, int mask) {
  return {_mm256_and_si256(_mm256_srli_epi16(a.v, n), _mm256_set1_epi8(static_cast<char>(mask)))};
}

LLM_SIMD __m256i LaneMask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LLM_SIMD Floats SetFloats(float x) { return {_mm256_set1_ps(x)}; }
LLM_SIMD Floats ZeroFloats() { return {_mm256_setzero_ps()}; }
LLM_SIMD Floats MulFloats(Floats a, Floats b) { return {_mm256_mul_ps(a.v, b.v)}; }
LLM_SIMD Floats AddFloats(Floats a, Floats b) { return {_mm256_add_ps(a.v, b.v)}; }
LLM_SIMD Floats FmaFloats(Floats a, Floats b, Floats c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
LLM_SIMD Floats NegFloats(Floats a) { return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))}; }
LLM_SIMD Floats ToFloats(Words a) { return {_mm256_cvtepi32_ps(a.v)}; }
LLM_SIMD Floats LoadFloats(const float* p, int n) { return {_mm256_maskload_ps(p, LaneMask(n))}; }
LLM_SIMD Floats LoadFloats(const float* p) { return {_mm256_loadu_ps(p)}; }
LLM_SIMD void StoreFloats(float* p, Floats a) { _mm256_storeu_ps(p, a.v); }
LLM_SIMD void StoreFloats(float* p, Floats a, int n) { _mm256_maskstore_ps(p, LaneMask(n), a.v); }
LLM_SIMD Floats LoadHalves(const uint8_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
LLM_SIMD Floats LoadUnsignedBytes(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
LLM_SIMD Floats LoadSignedBytes(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}

// The same lanes as four bytes each, or as one word.
LLM_SIMD Words AsWords(Bytes a) { return {a.v}; }
LLM_SIMD Bytes AsBytes(Words a) { return {a.v}; }
// One unsigned byte or short a lane.
LLM_SIMD Words LoadByteWords(const uint8_t* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
LLM_SIMD Words LoadShortWords(const uint8_t* p) {
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
LLM_SIMD Words SetWords(int32_t x) { return {_mm256_set1_epi32(x)}; }
LLM_SIMD Words And(Words a, int32_t mask) {
  return {_mm256_and_si256(a.v, _mm256_set1_epi32(mask))};
}
LLM_SIMD Words Or(Words a, Words b) { return {_mm256_or_si256(a.v, b.v)}; }
LLM_SIMD Words Xor(Words a, Words b) { return {_mm256_xor_si256(a.v, b.v)}; }
LLM_SIMD Words Sub(Words a, Words b) { return {_mm256_sub_epi32(a.v, b.v)}; }
LLM_SIMD Words ShiftRight(Words a, int n) { return {_mm256_srli_epi32(a.v, n)}; }
LLM_SIMD Words ShiftLeft(Words a, int n) { return {_mm256_slli_epi32(a.v, n)}; }
// table[index] of both halves of each lane. REQUIRES: they exist, and one entry behind them. kSize:
// points of the table.
template <int kSize>
LLM_SIMD Words LookupPairs(const uint16_t* table, Words index) {
  const int* base = reinterpret_cast<const int*>(table);
  const __m256i low = _mm256_i32gather_epi32(base, And(index, 0xffff).v, 2);
  const __m256i high = _mm256_i32gather_epi32(base, _mm256_srli_epi32(index.v, 16), 2);
  return {_mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa)};
}
// The low, or high, halves of the lanes of a and of b.
LLM_SIMD Words JoinLow(Words a, Words b) {
  return {_mm256_blend_epi16(a.v, _mm256_slli_epi32(b.v, 16), 0xaa)};
}
LLM_SIMD Words JoinHigh(Words a, Words b) {
  return {_mm256_blend_epi16(_mm256_srli_epi32(a.v, 16), b.v, 0xaa)};
}
// The bits of each lane as an f32.
LLM_SIMD Floats AsFloats(Words a) { return {_mm256_castsi256_ps(a.v)}; }
LLM_SIMD Words And(Words a, Words b) { return {_mm256_and_si256(a.v, b.v)}; }
// kLanes E4M3 numbers, any code (e4m3.h), divided by 256: as f16, whose exponent bias is 8 larger.
LLM_SIMD Floats LoadE4M3Of256th(const uint8_t* p) {
  const __m128i code = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m128i twice_signed = _mm_srai_epi16(_mm_slli_epi16(code, 8), 1);
  return {
      _mm256_cvtph_ps(_mm_and_si128(twice_signed, _mm_set1_epi16(static_cast<int16_t>(0xbfff))))};
}
// The low half of each lane as an f16. REQUIRES: the high half is 0.
LLM_SIMD Floats HalvesOf(Words a) {
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(a.v, a.v), 0xd8);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(packed))};
}

// table[index] of each byte. REQUIRES: index < 16.
LLM_SIMD Bytes Lookup(const uint8_t* table, Bytes index) {
  const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(row), index.v)};
}
LLM_SIMD Bytes Add(Bytes a, Bytes b) { return {_mm256_add_epi8(a.v, b.v)}; }  // modulo 256
LLM_SIMD Bytes SetBytes(int x) { return {_mm256_set1_epi8(static_cast<char>(x))}; }
// sum - x where bit n of the byte of `signs` is set, else x.
template <int n>
LLM_SIMD Bytes MirrorWhere(Bytes signs, int sum, Bytes x) {
  const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << n));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(signs.v, bit), bit);
  const __m256i mirrored = _mm256_sub_epi8(_mm256_set1_epi8(static_cast<char>(sum)), x.v);
  return {_mm256_blendv_epi8(x.v, mirrored, set)};
}
// 3 x / 256: the first digit of x / 256 in base 3.
LLM_SIMD Bytes FirstDigit(Bytes a) {
  const __m256i one = _mm256_cmpeq_epi8(_mm256_max_epu8(a.v, _mm256_set1_epi8(86)), a.v);
  const __m256i two =
      _mm256_cmpeq_epi8(_mm256_max_epu8(a.v, _mm256_set1_epi8(static_cast<char>(171))), a.v);
  return {_mm256_abs_epi8(_mm256_add_epi8(one, two))};
}
// Numbers of 5 bits of rows [row, row + kLanes), four each: byte b of a tile's 64 has its low 4
// bits in nibble b / 32 of byte b % 32, its top bit in bit b % 8 of byte 32 + b / 8.
LLM_SIMD Bytes LoadFiveBits(const uint8_t* p, int row) {
  const __m256i pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i low = _mm256_and_si256(_mm256_srl_epi16(pair, _mm_cvtsi32_si128(row / 8 * 4)),
                                       _mm256_set1_epi8(0x0f));
  int32_t bits;
  std::memcpy(&bits, p + 32 + row / 2, sizeof(bits));
  const __m256i byte_of =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of);
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
  return {_mm256_or_si256(low, _mm256_and_si256(set, _mm256_set1_epi8(0x10)))};
}

LLM_SIMD __m256i BroadcastFour(const int8_t* activations) {
  int32_t four;
  std::memcpy(&four, activations, sizeof(four));
  return _mm256_set1_epi32(four);
}

// Byte j of each lane, as f32.
LLM_SIMD Floats ByteOfLanes(Bytes a, int j) {
  return {
      _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(a.v, 8 * j), _mm256_set1_epi32(0xff)))};
}

// Full bytes: u8 products would saturate. The weight's signed value moves its sign to the
// activation instead (|w| <= 128, |activation| <= 127: at most 2 * 16256 a pair), which makes the
// correction (-128 * sum) superfluous.
LLM_SIMD Words DotFullBytes(const Bytes* w, const int8_t* activations) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  for (int s = 0; s < 8; ++s) {
    const __m256i signed_w = _mm256_xor_si256(w[s].v, _mm256_set1_epi8(-128));
    const __m256i pairs = _mm256_maddubs_epi16(
        _mm256_abs_epi8(signed_w), _mm256_sign_epi8(BroadcastFour(activations + 4 * s), signed_w));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
  }
  return {sum};
}

// correction + sum over kSteps steps of w[s] (u8, at most kMaxQuant) x the step's four activations.
// Exact: each product of `maddubs` is at most kMaxQuant * 127, so that kChain sums of two stay
// within 16 bits.
template <int kMaxQuant, int kSteps>
LLM_SIMD Words Dot(const Bytes* w, const int8_t* activations, int32_t correction) {
  if constexpr (kMaxQuant == 255) return DotFullBytes(w, activations);
  constexpr int kRoom = 32767 / (2 * 127 * (kMaxQuant < 128 ? kMaxQuant : 1));
  constexpr int kChain = kRoom < kSteps ? kRoom : kSteps;
  static_assert(kChain > 0 && kSteps % kChain == 0);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_set1_epi32(correction);
  for (int s = 0; s < kSteps; s += kChain) {
    __m256i pairs = _mm256_maddubs_epi16(w[s].v, BroadcastFour(activations + 4 * s));
    for (int i = s + 1; i < s + kChain; ++i) {
      pairs =
          _mm256_add_epi16(pairs, _mm256_maddubs_epi16(w[i].v, BroadcastFour(activations + 4 * i)));
    }
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
  }
  return {sum};
}

}  // namespace llm::LLM_CPU_ISA
