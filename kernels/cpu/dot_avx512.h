// Integer dot products for 16 weight rows at once, on AVX-512 VNNI. Included by tile_formats.h.
#pragma once

#include <immintrin.h>

#include <cstring>

namespace llm::LLM_CPU_ISA {

inline constexpr int kLanes = 16;  // weight rows handled at once
inline constexpr int kMaxRows =
    8;  // activation rows: 8 accumulators, 8 unpacked weights, the rest for scales and sums

struct Floats {
  __m512 v;
};
struct Words {  // one i32 a lane
  __m512i v;
};
struct Bytes {  // four u8 a lane
  __m512i v;
};

LLM_SIMD Bytes LoadBytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
LLM_SIMD void StoreBytes(uint8_t* p, Bytes a) { _mm512_storeu_si512(p, a.v); }
LLM_SIMD Bytes Or(Bytes a, Bytes b) { return {_mm512_or_si512(a.v, b.v)}; }
// (a << n) & mask or (a >> n) & mask in each byte. REQUIRES: the mask keeps no bit that came from
// another byte.
template <int n>
LLM_SIMD Bytes ShiftLeftAnd(Bytes a, int mask) {
  return {_mm512_and_si512(_mm512_slli_epi16(a.v, n), _mm512_set1_epi8(static_cast<char>(mask)))};
}
template <int n>
LLM_SIMD Bytes ShiftRightAnd(Bytes a, int mask) {
  return {_mm512_and_si512(_mm512_srli_epi16(a.v, n), _mm512_set1_epi8(static_cast<char>(mask)))};
}

LLM_SIMD Floats SetFloats(float x) { return {_mm512_set1_ps(x)}; }
LLM_SIMD Floats ZeroFloats() { return {_mm512_setzero_ps()}; }
LLM_SIMD Floats MulFloats(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
LLM_SIMD Floats AddFloats(Floats a, Floats b) { return {_mm512_add_ps(a.v, b.v)}; }
LLM_SIMD Floats FmaFloats(Floats a, Floats b, Floats c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
LLM_SIMD Floats NegFloats(Floats a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
LLM_SIMD Floats ToFloats(Words a) { return {_mm512_cvtepi32_ps(a.v)}; }
LLM_SIMD Floats LoadFloats(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p)};
}
LLM_SIMD Floats LoadFloats(const float* p) { return {_mm512_loadu_ps(p)}; }
LLM_SIMD void StoreFloats(float* p, Floats a) { _mm512_storeu_ps(p, a.v); }
LLM_SIMD void StoreFloats(float* p, Floats a, int n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), a.v);
}
LLM_SIMD Floats LoadHalves(const uint8_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LLM_SIMD Floats LoadUnsignedBytes(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
LLM_SIMD Floats LoadSignedBytes(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}

// The same lanes as four bytes each, or as one word.
LLM_SIMD Words AsWords(Bytes a) { return {a.v}; }
LLM_SIMD Bytes AsBytes(Words a) { return {a.v}; }
// One unsigned byte or short a lane.
LLM_SIMD Words LoadByteWords(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
LLM_SIMD Words LoadShortWords(const uint8_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LLM_SIMD Words SetWords(int32_t x) { return {_mm512_set1_epi32(x)}; }
LLM_SIMD Words And(Words a, int32_t mask) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi32(mask))};
}
LLM_SIMD Words Or(Words a, Words b) { return {_mm512_or_si512(a.v, b.v)}; }
LLM_SIMD Words Xor(Words a, Words b) { return {_mm512_xor_si512(a.v, b.v)}; }
LLM_SIMD Words Sub(Words a, Words b) { return {_mm512_sub_epi32(a.v, b.v)}; }
LLM_SIMD Words ShiftRight(Words a, int n) {
  return {_mm512_srli_epi32(a.v, static_cast<unsigned>(n))};
}
LLM_SIMD Words ShiftLeft(Words a, int n) {
  return {_mm512_slli_epi32(a.v, static_cast<unsigned>(n))};
}
// Entry index % kSize of each half of a lane: 64 entries a permutation, then choices by the bits
// above.
template <int kSize>
LLM_SIMD __m512i SelectEntries(const uint16_t* table, __m512i index) {
  if constexpr (kSize == 64) {
    return _mm512_permutex2var_epi16(_mm512_loadu_si512(table), index,
                                     _mm512_loadu_si512(table + 32));
  } else {
    const __m512i low = SelectEntries<kSize / 2>(table, index);
    const __m512i high = SelectEntries<kSize / 2>(table + kSize / 2, index);
    const __mmask32 bit = _mm512_test_epi16_mask(index, _mm512_set1_epi16(kSize / 2));
    return _mm512_mask_blend_epi16(bit, low, high);
  }
}
// table[index] of both halves of each lane. REQUIRES: they exist, and one entry behind them. kSize:
// points of the table; more than 1024 are gathered, which a permutation of each 64 would not beat.
template <int kSize>
LLM_SIMD Words LookupPairs(const uint16_t* table, Words index) {
  if constexpr (kSize <= 1024) return {SelectEntries<kSize>(table, index.v)};
  const __m512i low = _mm512_i32gather_epi32(And(index, 0xffff).v, table, 2);
  const __m512i high = _mm512_i32gather_epi32(_mm512_srli_epi32(index.v, 16), table, 2);
  return {_mm512_mask_blend_epi16(0xaaaaaaaa, low, _mm512_slli_epi32(high, 16))};
}
// The low, or high, halves of the lanes of a and of b.
LLM_SIMD Words JoinLow(Words a, Words b) {
  return {_mm512_mask_blend_epi16(0xaaaaaaaa, a.v, _mm512_slli_epi32(b.v, 16))};
}
LLM_SIMD Words JoinHigh(Words a, Words b) {
  return {_mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(a.v, 16), b.v)};
}
// The bits of each lane as an f32.
LLM_SIMD Floats AsFloats(Words a) { return {_mm512_castsi512_ps(a.v)}; }
LLM_SIMD Words And(Words a, Words b) { return {_mm512_and_si512(a.v, b.v)}; }
// kLanes E4M3 numbers, any code (e4m3.h), divided by 256: as f16, whose exponent bias is 8 larger.
LLM_SIMD Floats LoadE4M3Of256th(const uint8_t* p) {
  const __m256i code = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i twice_signed = _mm256_srai_epi16(_mm256_slli_epi16(code, 8), 1);
  return {_mm512_cvtph_ps(
      _mm256_and_si256(twice_signed, _mm256_set1_epi16(static_cast<int16_t>(0xbfff))))};
}
// The low half of each lane as an f16.
LLM_SIMD Floats HalvesOf(Words a) { return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(a.v))}; }

// table[index] of each byte. REQUIRES: index < 16.
LLM_SIMD Bytes Lookup(const uint8_t* table, Bytes index) {
  const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(row), index.v)};
}
LLM_SIMD Bytes Add(Bytes a, Bytes b) { return {_mm512_add_epi8(a.v, b.v)}; }  // modulo 256
LLM_SIMD Bytes SetBytes(int x) { return {_mm512_set1_epi8(static_cast<char>(x))}; }
// sum - x where bit n of the byte of `signs` is set, else x.
template <int n>
LLM_SIMD Bytes MirrorWhere(Bytes signs, int sum, Bytes x) {
  const __mmask64 set = _mm512_test_epi8_mask(signs.v, _mm512_set1_epi8(static_cast<char>(1 << n)));
  return {_mm512_mask_sub_epi8(x.v, set, _mm512_set1_epi8(static_cast<char>(sum)), x.v)};
}
// 3 x / 256: the first digit of x / 256 in base 3.
LLM_SIMD Bytes FirstDigit(Bytes a) {
  const __m512i ones = _mm512_set1_epi8(1);
  const __m512i one =
      _mm512_maskz_mov_epi8(_mm512_cmpge_epu8_mask(a.v, _mm512_set1_epi8(86)), ones);
  const __mmask64 two = _mm512_cmpge_epu8_mask(a.v, _mm512_set1_epi8(static_cast<char>(171)));
  return {_mm512_mask_add_epi8(one, two, one, ones)};
}
// Numbers of 5 bits of rows [row, row + kLanes), four each: byte b of a tile's 64 has its low 4
// bits in nibble b / 32 of byte b % 32, its top bit in bit b % 8 of byte 32 + b / 8.
LLM_SIMD Bytes LoadFiveBits(const uint8_t* p, int /*row*/) {
  const __m256i pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m512i both =
      _mm512_inserti64x4(_mm512_castsi256_si512(pair), _mm256_srli_epi16(pair, 4), 1);
  const __m512i low = _mm512_and_si512(both, _mm512_set1_epi8(0x0f));
  uint64_t bits;
  std::memcpy(&bits, p + 32, sizeof(bits));
  return {_mm512_or_si512(low, _mm512_maskz_set1_epi8(_cvtu64_mask64(bits), 0x10))};
}

// Byte j of each lane, as f32.
LLM_SIMD Floats ByteOfLanes(Bytes a, int j) {
  return {_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(a.v, static_cast<unsigned>(8 * j)),
                                              _mm512_set1_epi32(0xff)))};
}

// correction + sum over kSteps steps of w[s] (u8, at most kMaxQuant) x the step's four activations.
// Exact.
template <int kMaxQuant, int kSteps>
LLM_SIMD Words Dot(const Bytes* w, const int8_t* activations, int32_t correction) {
  __m512i sum = _mm512_set1_epi32(correction);
  for (int s = 0; s < kSteps; ++s) {
    int32_t four;
    std::memcpy(&four, activations + 4 * s, sizeof(four));
    sum = _mm512_dpbusd_epi32(sum, w[s].v, _mm512_set1_epi32(four));
  }
  return {sum};
}

}  // namespace llm::LLM_CPU_ISA
