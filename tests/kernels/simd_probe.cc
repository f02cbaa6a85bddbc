// Compiled per ISA.
#include "tests/kernels/simd_probe.h"

#include "kernels/cpu/simd.h"

namespace llm::LLM_CPU_ISA {

SimdProbe GetSimdProbe() {
  SimdProbe probe;
  probe.exp = [](const float* in, float* out) { Store(out, Exp(Load(in))); };
  probe.tanh = [](const float* in, float* out) { Store(out, Tanh(Load(in))); };
  probe.round = [](const float* in, float* out) { Store(out, Round(Load(in))); };
  probe.load_f16 = [](const uint16_t* in, float* out) { Store(out, LoadF16(in)); };
  probe.load_bf16 = [](const uint16_t* in, float* out) { Store(out, LoadBF16(in)); };
  probe.load_f8 = [](const uint8_t* in, float* out) { Store(out, LoadF8E4M3(in)); };
  probe.load_i8 = [](const int8_t* in, float* out) { Store(out, LoadI8(in)); };
  probe.store_f16 = [](const float* in, uint16_t* out) { StoreF16(out, Load(in)); };
  probe.store_bf16 = [](const float* in, uint16_t* out) { StoreBF16(out, Load(in)); };
  probe.store_f8 = [](const float* in, uint8_t* out) { StoreF8E4M3(out, Load(in)); };
  probe.store_i8 = [](const float* in, int8_t* out) { StoreI8(out, Load(in)); };
  probe.copy = [](const float* in, int n, float* out) { Store(out, Load(in, n), n); };
  probe.sum = [](const float* in) { return ReduceAdd(Load(in)); };
  probe.max = [](const float* in) { return ReduceMax(Load(in)); };
  return probe;
}

}  // namespace llm::LLM_CPU_ISA
