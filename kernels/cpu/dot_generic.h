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

// 2^(p[i] - 127); 0 for a byte of 0.
LLM_SIMD Floats LoadExponents(const uint8_t* p) {
  Floats r;
  LLM_LANES {
    const uint32_t bits = static_cast<uint32_t>(p[i]) << 23;
    std::memcpy(&r.v[i], &bits, sizeof(bits));
  }
  return r;
}
// table[i] for each byte i. REQUIRES: i < 16.
LLM_SIMD Bytes Lookup(const uint8_t* table, Bytes b) {
  for (int i = 0; i < 4 * kLanes; ++i) b.v[i] = table[b.v[i]];
  return b;
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
