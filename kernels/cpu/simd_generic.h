// F32x16 as a plain array: loops that any compiler turns into what the baseline has. Contract:
// simd.h.
#pragma once

#include <cstdint>
#include <cstring>

namespace llm::LLM_CPU_ISA {

struct F32x16 {
  float v[16];
};
struct Mask {
  bool m[16];
};

#define LLM_LANES for (int i = 0; i < 16; ++i)

LLM_SIMD uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
LLM_SIMD float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

LLM_SIMD Mask FirstLanes(int n) {
  Mask r;
  LLM_LANES r.m[i] = i < n;
  return r;
}
LLM_SIMD F32x16 Load(const float* p) {
  F32x16 r;
  std::memcpy(r.v, p, sizeof(r.v));
  return r;
}
LLM_SIMD F32x16 Load(const float* p, int n) {
  F32x16 r;
  LLM_LANES r.v[i] = i < n ? p[i] : 0.0f;
  return r;
}
LLM_SIMD void Store(float* p, F32x16 a) { std::memcpy(p, a.v, sizeof(a.v)); }
LLM_SIMD void Store(float* p, F32x16 a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}

LLM_SIMD F32x16 Set(float x) {
  F32x16 r;
  LLM_LANES r.v[i] = x;
  return r;
}
LLM_SIMD F32x16 Zero() { return Set(0.0f); }
LLM_SIMD F32x16 Add(F32x16 a, F32x16 b) {
  LLM_LANES a.v[i] += b.v[i];
  return a;
}
LLM_SIMD F32x16 Sub(F32x16 a, F32x16 b) {
  LLM_LANES a.v[i] -= b.v[i];
  return a;
}
LLM_SIMD F32x16 Mul(F32x16 a, F32x16 b) {
  LLM_LANES a.v[i] *= b.v[i];
  return a;
}
LLM_SIMD F32x16 Div(F32x16 a, F32x16 b) {
  LLM_LANES a.v[i] /= b.v[i];
  return a;
}
LLM_SIMD F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  LLM_LANES a.v[i] = a.v[i] * b.v[i] + c.v[i];
  return a;
}
LLM_SIMD F32x16 Max(F32x16 a, F32x16 b) {
  LLM_LANES a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return a;
}
LLM_SIMD F32x16 Min(F32x16 a, F32x16 b) {
  LLM_LANES a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
  return a;
}
LLM_SIMD F32x16 Abs(F32x16 a) {
  LLM_LANES a.v[i] = FromBits(Bits(a.v[i]) & 0x7fffffffu);
  return a;
}
LLM_SIMD F32x16 Sqrt(F32x16 a) {
  LLM_LANES a.v[i] = __builtin_sqrtf(a.v[i]);
  return a;
}
// From 2^23 on every f32 is integral; below, adding it leaves the integer, rounded to nearest even.
LLM_SIMD F32x16 Round(F32x16 a) {
  constexpr float kShift = 0x1p23f;
  LLM_LANES {
    const float magnitude = FromBits(Bits(a.v[i]) & 0x7fffffffu);
    const float rounded = (magnitude + kShift) - kShift;
    const float kept = magnitude < kShift ? rounded : magnitude;
    a.v[i] = FromBits(Bits(kept) | (Bits(a.v[i]) & 0x80000000u));
  }
  return a;
}
// In two factors, each a normal power of two: 2^n itself may be none. NaN stands for 0.
LLM_SIMD F32x16 Scale2(F32x16 a, F32x16 n) {
  LLM_LANES {
    const int32_t exponent = n.v[i] == n.v[i] ? static_cast<int32_t>(n.v[i]) : 0;
    const int32_t first = exponent / 2;
    a.v[i] *= FromBits(static_cast<uint32_t>(first + 127) << 23);
    a.v[i] *= FromBits(static_cast<uint32_t>(exponent - first + 127) << 23);
  }
  return a;
}

LLM_SIMD Mask Less(F32x16 a, F32x16 b) {
  Mask r;
  LLM_LANES r.m[i] = a.v[i] < b.v[i];
  return r;
}
LLM_SIMD Mask Equal(F32x16 a, F32x16 b) {
  Mask r;
  LLM_LANES r.m[i] = a.v[i] == b.v[i];
  return r;
}
LLM_SIMD Mask And(Mask a, Mask b) {
  LLM_LANES a.m[i] = a.m[i] && b.m[i];
  return a;
}
LLM_SIMD Mask Not(Mask a) {
  LLM_LANES a.m[i] = !a.m[i];
  return a;
}
LLM_SIMD bool Any(Mask a) {
  bool any = false;
  LLM_LANES any = any || a.m[i];
  return any;
}
LLM_SIMD F32x16 Select(Mask mask, F32x16 a, F32x16 b) {
  LLM_LANES a.v[i] = mask.m[i] ? a.v[i] : b.v[i];
  return a;
}

// Scalar conversions of this ISA's own: those of float_convert.h are inline functions with a name
// that is shared.
LLM_SIMD float HalfToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) return FromBits(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude < 0x400u) return FromBits(sign | Bits(static_cast<float>(magnitude) * 0x1p-24f));
  return FromBits(sign | ((magnitude << 13) + 0x38000000u));
}
LLM_SIMD uint16_t FloatToHalf(float f) {
  const uint32_t sign = (Bits(f) >> 16) & 0x8000u;
  const uint32_t magnitude = Bits(f) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    return static_cast<uint16_t>(sign | (Bits(FromBits(magnitude) + 0.5f) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}
LLM_SIMD float F8ToFloat(uint8_t v) {
  const uint32_t magnitude = v & 0x7fu;
  const uint32_t half = (magnitude << 7) | (magnitude == 0x7fu ? 0x7e00u : 0u) | ((v & 0x80u) << 8);
  return HalfToFloat(static_cast<uint16_t>(half)) * 256.0f;
}
LLM_SIMD uint8_t FloatToF8(float f) {
  const uint32_t sign = (Bits(f) >> 24) & 0x80u;
  const uint32_t magnitude = Bits(f) & 0x7fffffffu;
  uint32_t code = (magnitude + 0x7ffffu + ((magnitude >> 20) & 1u) - 0x3c000000u) >> 20;
  if (magnitude < 0x3c800000u) code = Bits(FromBits(magnitude) + 0x1p14f) - Bits(0x1p14f);
  if (magnitude >= 0x43e00000u) code = magnitude > 0x7f800000u ? 0x7fu : 0x7eu;
  return static_cast<uint8_t>(sign | code);
}

LLM_SIMD F32x16 LoadF16(const uint16_t* p) {
  F32x16 r;
  LLM_LANES r.v[i] = HalfToFloat(p[i]);
  return r;
}
LLM_SIMD F32x16 LoadBF16(const uint16_t* p) {
  F32x16 r;
  LLM_LANES r.v[i] = FromBits(static_cast<uint32_t>(p[i]) << 16);
  return r;
}
LLM_SIMD F32x16 LoadBF16Low(const uint16_t* p) {
  F32x16 r;
  LLM_LANES r.v[i] = FromBits(static_cast<uint32_t>(p[2 * i]) << 16);
  return r;
}
LLM_SIMD F32x16 LoadBF16High(const uint16_t* p) {
  F32x16 r;
  LLM_LANES r.v[i] = FromBits(static_cast<uint32_t>(p[2 * i + 1]) << 16);
  return r;
}
LLM_SIMD F32x16 LoadI8(const int8_t* p) {
  F32x16 r;
  LLM_LANES r.v[i] = static_cast<float>(p[i]);
  return r;
}
LLM_SIMD F32x16 LoadU8(const uint8_t* p) {
  F32x16 r;
  LLM_LANES r.v[i] = static_cast<float>(p[i]);
  return r;
}
LLM_SIMD F32x16 LoadF8E4M3(const uint8_t* p) {
  F32x16 r;
  LLM_LANES r.v[i] = F8ToFloat(p[i]);
  return r;
}
LLM_SIMD void StoreF16(uint16_t* p, F32x16 a) { LLM_LANES p[i] = FloatToHalf(a.v[i]); }
LLM_SIMD void StoreBF16(uint16_t* p, F32x16 a) {
  LLM_LANES {
    const uint32_t bits = Bits(a.v[i]);
    const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    p[i] = static_cast<uint16_t>((a.v[i] == a.v[i] ? rounded : bits | 0x400000u) >> 16);
  }
}
LLM_SIMD void StoreI8(int8_t* p, F32x16 a) {
  const F32x16 rounded = Round(a);
  LLM_LANES p[i] = static_cast<int8_t>(rounded.v[i]);
}
LLM_SIMD void StoreF8E4M3(uint8_t* p, F32x16 a) { LLM_LANES p[i] = FloatToF8(a.v[i]); }

#undef LLM_LANES

}  // namespace llm::LLM_CPU_ISA
