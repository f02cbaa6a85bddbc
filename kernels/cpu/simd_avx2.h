// F32x16 on AVX2, FMA and F16C: two ymm registers. Contract: simd.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace llm::LLM_CPU_ISA {

struct F32x16 {
  __m256 lo, hi;
};
struct Mask {
  __m256 lo, hi;
};

LLM_SIMD Mask FirstLanes(int n) {
  const __m256i count = _mm256_set1_epi32(n);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(count, lanes)),
          _mm256_castsi256_ps(
              _mm256_cmpgt_epi32(count, _mm256_add_epi32(lanes, _mm256_set1_epi32(8))))};
}
LLM_SIMD F32x16 Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LLM_SIMD F32x16 Load(const float* p, int n) {
  const Mask mask = FirstLanes(n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(mask.lo)),
          _mm256_maskload_ps(p + 8, _mm256_castps_si256(mask.hi))};
}
LLM_SIMD void Store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
LLM_SIMD void Store(float* p, F32x16 a, int n) {
  const Mask mask = FirstLanes(n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(mask.lo), a.lo);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(mask.hi), a.hi);
}

LLM_SIMD F32x16 Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
LLM_SIMD F32x16 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
LLM_SIMD F32x16 Add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
LLM_SIMD F32x16 Sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
LLM_SIMD F32x16 Mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
LLM_SIMD F32x16 Div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
LLM_SIMD F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
LLM_SIMD F32x16 Max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
LLM_SIMD F32x16 Min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
LLM_SIMD F32x16 Abs(F32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
LLM_SIMD F32x16 Sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
LLM_SIMD F32x16 Round(F32x16 a) {
  return {_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
// In two factors, each a normal power of two: 2^n itself may be none.
LLM_SIMD __m256 Scale2Half(__m256 a, __m256 n) {
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i exponent = _mm256_cvtps_epi32(n);
  const __m256i first = _mm256_srai_epi32(exponent, 1);
  const __m256i second = _mm256_sub_epi32(exponent, first);
  a = _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(first, bias), 23)));
  return _mm256_mul_ps(a,
                       _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(second, bias), 23)));
}
LLM_SIMD F32x16 Scale2(F32x16 a, F32x16 n) {
  return {Scale2Half(a.lo, n.lo), Scale2Half(a.hi, n.hi)};
}

LLM_SIMD Mask Less(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
LLM_SIMD Mask Equal(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
LLM_SIMD Mask And(Mask a, Mask b) { return {_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)}; }
LLM_SIMD Mask Not(Mask a) {
  const __m256 ones = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  return {_mm256_xor_ps(a.lo, ones), _mm256_xor_ps(a.hi, ones)};
}
LLM_SIMD bool Any(Mask a) { return _mm256_movemask_ps(_mm256_or_ps(a.lo, a.hi)) != 0; }
LLM_SIMD F32x16 Select(Mask mask, F32x16 a, F32x16 b) {
  return {_mm256_blendv_ps(b.lo, a.lo, mask.lo), _mm256_blendv_ps(b.hi, a.hi, mask.hi)};
}

LLM_SIMD __m128i Load16Bytes(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
LLM_SIMD __m128i Load8Bytes(const void* p) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(p));
}

LLM_SIMD F32x16 LoadF16(const uint16_t* p) {
  return {_mm256_cvtph_ps(Load16Bytes(p)), _mm256_cvtph_ps(Load16Bytes(p + 8))};
}
LLM_SIMD F32x16 LoadBF16(const uint16_t* p) {
  const __m256i lo = _mm256_slli_epi32(_mm256_cvtepu16_epi32(Load16Bytes(p)), 16);
  const __m256i hi = _mm256_slli_epi32(_mm256_cvtepu16_epi32(Load16Bytes(p + 8)), 16);
  return {_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}
LLM_SIMD __m256i Load32Bytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
LLM_SIMD F32x16 LoadBF16Low(const uint16_t* p) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(Load32Bytes(p), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(Load32Bytes(p + 16), 16))};
}
LLM_SIMD F32x16 LoadBF16High(const uint16_t* p) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(Load32Bytes(p), high)),
          _mm256_castsi256_ps(_mm256_and_si256(Load32Bytes(p + 16), high))};
}
LLM_SIMD F32x16 LoadI8(const int8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(Load8Bytes(p))),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(Load8Bytes(p + 8)))};
}
LLM_SIMD F32x16 LoadU8(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(Load8Bytes(p))),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(Load8Bytes(p + 8)))};
}
// Through f16, whose exponent bias is 8 larger; e4m3's subnormals are f16's. 0x7f, the NaN, becomes
// one of f16's.
LLM_SIMD F32x16 LoadF8E4M3(const uint8_t* p) {
  const __m256i code = _mm256_cvtepu8_epi16(Load16Bytes(p));
  const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7f));
  const __m256i sign = _mm256_slli_epi16(_mm256_sub_epi16(code, magnitude), 8);
  const __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f)),
                                       _mm256_set1_epi16(0x7e00));
  const __m256i half = _mm256_or_si256(_mm256_or_si256(sign, nan), _mm256_slli_epi16(magnitude, 7));
  const __m256 rebias = _mm256_set1_ps(256.0f);
  return {_mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), rebias),
          _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), rebias)};
}

LLM_SIMD void StoreF16(uint16_t* p, F32x16 a) {
  constexpr int kRounding = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, kRounding));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, kRounding));
}
LLM_SIMD __m256i BF16Bits(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
  return _mm256_srli_epi32(_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(rounded),
                                                                _mm256_castsi256_ps(quiet), nan)),
                           16);
}
LLM_SIMD void StoreBF16(uint16_t* p, F32x16 a) {
  const __m256i packed = _mm256_packus_epi32(BF16Bits(a.lo), BF16Bits(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
// Narrows 2 x 8 lanes, each a value in [-128, 127], to 16 bytes in lane order.
LLM_SIMD __m128i NarrowToBytes(__m256i lo, __m256i hi) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(lo, hi), 0xd8);
  return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
LLM_SIMD void StoreI8(int8_t* p, F32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   NarrowToBytes(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)));
}
// As F32ToF8E4M3 of float_convert.h, lane by lane; the sign is bit 31 here, so that NarrowToBytes
// sees [-128, 127].
LLM_SIMD __m256i F8E4M3Code(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 20), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x7ffff)), odd);
  __m256i code = _mm256_srai_epi32(_mm256_sub_epi32(rounded, _mm256_set1_epi32(0x3c000000)), 20);
  code = _mm256_min_epi32(code, _mm256_set1_epi32(0x7e));
  const __m256 shift = _mm256_set1_ps(0x1p14f);  // 2^-9, the step of subnormals, is its last bit
  const __m256i small =
      _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(magnitude), shift)),
                       _mm256_castps_si256(shift));
  code =
      _mm256_blendv_epi8(code, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3c800000), magnitude));
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7f), nan);
  return _mm256_or_si256(code,
                         _mm256_and_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(-128)));
}
LLM_SIMD void StoreF8E4M3(uint8_t* p, F32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   NarrowToBytes(F8E4M3Code(a.lo), F8E4M3Code(a.hi)));
}

}  // namespace llm::LLM_CPU_ISA
