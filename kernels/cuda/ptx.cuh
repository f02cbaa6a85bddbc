// The only place with PTX: asynchronous copies, matrix loads, tensor cores, dynamic shared memory.
//
// Names and operands are the PTX ISA's; sm_80 has all of it. tests/cuda_on_cpu has the same
// functions for its emulated device, which find no mistake in the assembly below.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace llm {

// The block's dynamic shared memory, 16-byte aligned. Kernels have no other: its size is the
// launcher's, and the emulator watches every byte of it.
template <typename T>
__device__ __forceinline__ T* DynamicShared() {
  extern __shared__ __align__(16) unsigned char llm_dynamic_shared[];
  return reinterpret_cast<T*>(llm_dynamic_shared);
}

__device__ __forceinline__ uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// Starts a copy of 16 bytes past the first-level cache: the first `bytes` from `global`, zeros
// after them. Both addresses are multiples of 16.
__device__ __forceinline__ void CopyAsync16(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(SharedAddress(shared)), "l"(global), "r"(bytes)
               : "memory");
}

// The same of 4 bytes, through the first-level cache.
__device__ __forceinline__ void CopyAsync4(void* shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :
               : "r"(SharedAddress(shared)), "l"(global)
               : "memory");
}

// Closes the group of the copies since the last call.
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}

// Waits until at most kInFlight of this thread's groups are still on their way.
template <int kInFlight>
__device__ __forceinline__ void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kInFlight) : "memory");
}

// Four 8x8 matrices of 16-bit elements: lane 8 i + r gives the address of row r of matrix i, and
// register i receives two elements of its row lane / 4.
__device__ __forceinline__ void LoadMatrix4(uint32_t (&registers)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(SharedAddress(row))
               : "memory");
}

// Two of them; lanes 16 to 31 give any address that lanes 0 to 15 may give.
__device__ __forceinline__ void LoadMatrix2(uint32_t (&registers)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(registers[0]), "=r"(registers[1])
               : "r"(SharedAddress(row))
               : "memory");
}

// Each matrix turned over: register i receives elements 2 (lane % 4) and 2 (lane % 4) + 1 of its
// column lane / 4.
__device__ __forceinline__ void LoadTransposed4(uint32_t (&registers)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(SharedAddress(row))
               : "memory");
}
__device__ __forceinline__ void LoadTransposed2(uint32_t (&registers)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(registers[0]), "=r"(registers[1])
               : "r"(SharedAddress(row))
               : "memory");
}

// 2^x to two units in the last place; results below 2^-126 are zero.
__device__ __forceinline__ float Exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// d += a b, with a [16, 16] by rows, b [16, 8] by columns, d [16, 8] in f32.
__device__ __forceinline__ void MmaF16(float (&d)[4], const uint32_t (&a)[4],
                                       const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void MmaBF16(float (&d)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// d += a b exactly, with a [16, 32] by rows, b [32, 8] by columns, of signed bytes.
__device__ __forceinline__ void MmaS8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// With a [16, 16] and b [16, 8]: the first half of the registers above.
__device__ __forceinline__ void MmaS8(int (&d)[4], const uint32_t (&a)[2], uint32_t b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

}  // namespace llm
