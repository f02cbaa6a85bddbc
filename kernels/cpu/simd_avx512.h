// F32x16 on AVX-512 (F, BW, DQ, VL): one zmm register. Contract: simd.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace llm::LLM_CPU_ISA {

struct F32x16 {
  __m512 v;
};
struct Mask {
  __mmask16 m;
};

LLM_SIMD Mask FirstLanes(int n) { return {static_cast<__mmask16>((1u << n) - 1u)}; }
LLM_SIMD F32x16 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
LLM_SIMD F32x16 Load(const float* p, int n) { return {_mm512_maskz_loadu_ps(FirstLanes(n).m, p)}; }
LLM_SIMD void Store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
LLM_SIMD void Store(float* p, F32x16 a, int n) { _mm512_mask_storeu_ps(p, FirstLanes(n).m, a.v); }

LLM_SIMD F32x16 Set(float x) { return {_mm512_set1_ps(x)}; }
LLM_SIMD F32x16 Zero() { return {_mm512_setzero_ps()}; }
LLM_SIMD F32x16 Add(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
LLM_SIMD F32x16 Sub(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
LLM_SIMD F32x16 Mul(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
LLM_SIMD F32x16 Div(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
LLM_SIMD F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
LLM_SIMD F32x16 Max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
LLM_SIMD F32x16 Min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
LLM_SIMD F32x16 Abs(F32x16 a) { return {_mm512_abs_ps(a.v)}; }
LLM_SIMD F32x16 Sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
LLM_SIMD F32x16 Round(F32x16 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
LLM_SIMD F32x16 Scale2(F32x16 a, F32x16 n) { return {_mm512_scalef_ps(a.v, n.v)}; }

LLM_SIMD Mask Less(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
LLM_SIMD Mask Equal(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
LLM_SIMD Mask And(Mask a, Mask b) { return {static_cast<__mmask16>(a.m & b.m)}; }
LLM_SIMD Mask Not(Mask a) { return {static_cast<__mmask16>(~a.m)}; }
LLM_SIMD bool Any(Mask a) { return a.m != 0; }
LLM_SIMD F32x16 Select(Mask mask, F32x16 a, F32x16 b) {
  return {_mm512_mask_blend_ps(mask.m, b.v, a.v)};
}

LLM_SIMD F32x16 LoadF16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LLM_SIMD F32x16 LoadBF16(const uint16_t* p) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
LLM_SIMD F32x16 LoadBF16Low(const uint16_t* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
}
LLM_SIMD F32x16 LoadBF16High(const uint16_t* p) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), high))};
}
LLM_SIMD F32x16 LoadI8(const int8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
LLM_SIMD F32x16 LoadU8(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
// Through f16, whose exponent bias is 8 larger; e4m3's subnormals are f16's. 0x7f, the NaN, becomes
// one of f16's.
LLM_SIMD F32x16 LoadF8E4M3(const uint8_t* p) {
  const __m256i code = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7f));
  const __m256i sign = _mm256_slli_epi16(_mm256_sub_epi16(code, magnitude), 8);
  const __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f)),
                                       _mm256_set1_epi16(0x7e00));
  const __m256i half = _mm256_or_si256(_mm256_or_si256(sign, nan), _mm256_slli_epi16(magnitude, 7));
  return {_mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f))};
}

LLM_SIMD void StoreF16(uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LLM_SIMD void StoreBF16(uint16_t* p, F32x16 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet)));
}
LLM_SIMD void StoreI8(int8_t* p, F32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}
// As F32ToF8E4M3 of float_convert.h, lane by lane.
LLM_SIMD void StoreF8E4M3(uint8_t* p, F32x16 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  const __m512i sign = _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(magnitude, 20), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_add_epi32(_mm512_add_epi32(magnitude, _mm512_set1_epi32(0x7ffff)), odd);
  __m512i code = _mm512_srai_epi32(_mm512_sub_epi32(rounded, _mm512_set1_epi32(0x3c000000)), 20);
  code = _mm512_min_epi32(code, _mm512_set1_epi32(0x7e));
  const __m512 shift = _mm512_set1_ps(0x1p14f);  // 2^-9, the step of subnormals, is its last bit
  const __m512i small =
      _mm512_sub_epi32(_mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(magnitude), shift)),
                       _mm512_castps_si512(shift));
  code = _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(0x3c800000)),
                                 code, small);
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
  code = _mm512_mask_blend_epi32(nan, code, _mm512_set1_epi32(0x7f));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtepi32_epi8(_mm512_or_si512(code, sign)));
}

}  // namespace llm::LLM_CPU_ISA
