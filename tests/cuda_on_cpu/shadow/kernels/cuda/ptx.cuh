// What kernels/cuda/ptx.cuh does in assembly, on the emulated device: the same functions.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace llm {

template <typename T>
T* DynamicShared() {
  return reinterpret_cast<T*>(cuda_on_cpu::SharedMemory());
}

inline void CopyAsync16(void* shared, const void* global, int bytes) {
  cuda_on_cpu::CopyAsync(shared, global, bytes, 16);
}
inline void CopyAsync4(void* shared, const void* global) {
  cuda_on_cpu::CopyAsync(shared, global, 4, 4);
}
inline void CommitCopies() { cuda_on_cpu::CommitCopies(); }
template <int kInFlight>
void WaitCopies() {
  cuda_on_cpu::WaitCopies(kInFlight);
}

inline void LoadMatrix4(uint32_t (&registers)[4], const void* row) {
  cuda_on_cpu::LoadMatrix(4, false, row, registers);
}
inline void LoadMatrix2(uint32_t (&registers)[2], const void* row) {
  cuda_on_cpu::LoadMatrix(2, false, row, registers);
}
inline void LoadTransposed4(uint32_t (&registers)[4], const void* row) {
  cuda_on_cpu::LoadMatrix(4, true, row, registers);
}
inline void LoadTransposed2(uint32_t (&registers)[2], const void* row) {
  cuda_on_cpu::LoadMatrix(2, true, row, registers);
}

inline float Exp2(float x) {
  const float result = std::exp2(x);
  return result < 0x1p-126f ? 0.0f : result;
}

inline void MmaF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  cuda_on_cpu::Mma(cuda_on_cpu::MmaType::kF16, d, a, b);
}
inline void MmaBF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  cuda_on_cpu::Mma(cuda_on_cpu::MmaType::kBF16, d, a, b);
}

inline void MmaS8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  cuda_on_cpu::MmaS8(32, d, a, b);
}
inline void MmaS8(int (&d)[4], const uint32_t (&a)[2], uint32_t b) {
  cuda_on_cpu::MmaS8(16, d, a, &b);
}

}  // namespace llm
