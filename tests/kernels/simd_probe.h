// Array functions over the vector layer, compiled once per instruction set (simd_probe.cc).
#pragma once

#include <cstdint>

namespace llm {

struct SimdProbe {
  // 16 elements each.
  void (*exp)(const float* in, float* out);
  void (*tanh)(const float* in, float* out);
  void (*round)(const float* in, float* out);
  void (*load_f16)(const uint16_t* in, float* out);
  void (*load_bf16)(const uint16_t* in, float* out);
  void (*load_f8)(const uint8_t* in, float* out);
  void (*load_i8)(const int8_t* in, float* out);
  void (*store_f16)(const float* in, uint16_t* out);
  void (*store_bf16)(const float* in, uint16_t* out);
  void (*store_f8)(const float* in, uint8_t* out);
  void (*store_i8)(const float* in, int8_t* out);
  void (*copy)(const float* in, int n, float* out);  // a partial load, and a partial store of it
  float (*sum)(const float* in);
  float (*max)(const float* in);
};

namespace generic {
SimdProbe GetSimdProbe();
}
namespace avx2 {
SimdProbe GetSimdProbe();
}
namespace avx512 {
SimdProbe GetSimdProbe();
}

}  // namespace llm
