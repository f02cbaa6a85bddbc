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

// 2^(p[i] - 127); 0 for a byte of 0.
LLM_SIMD Floats LoadExponents(const uint8_t* p) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(bytes, 23))};
}
// table[i] for each byte i. REQUIRES: i < 16.
LLM_SIMD Bytes Lookup(const uint8_t* table, Bytes i) {
  const __m128i values = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), i.v)};
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
