// Twelve independent accumulators hide the latency of a multiply-add (4 to 5 cycles on two ports)
// and leave registers for the operands. An empty asm makes a value unknown to the compiler, which
// could otherwise compute a loop-invariant product once, or equal chains as one. The inner loops
// must be unrolled: an array that is indexed lives in memory, and the loop would measure the store
// port.
#include "limit_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace bench {
namespace {

constexpr int kChains = 12;

template <typename T>
inline __attribute__((always_inline)) void Hide(T& value) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(value));
#else
  asm volatile("" : "+m"(value));
#endif
}

void ReadGeneric(const uint64_t* words, size_t num_words) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i < num_words; i += 4) {
#pragma GCC unroll 16
    for (size_t k = 0; k < 4; ++k) sums[k] += words[i + k];
  }
  uint64_t sum = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  asm volatile("" : "+r"(sum));
}

#if defined(__x86_64__)

// SSE2, the floor of x86-64: 8 products of 16-bit values a pmaddwd, since it has none of bytes.
void Int8Generic(uint64_t repetitions) {
  __m128i sums[kChains] = {}, a = _mm_set1_epi16(3);
  const __m128i b = _mm_set1_epi16(5);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m128i& sum : sums) {
      Hide(a);
      sum = _mm_add_epi32(sum, _mm_madd_epi16(a, b));
    }
  }
#pragma GCC unroll 16
  for (__m128i& sum : sums) Hide(sum);
}

void F32Generic(uint64_t repetitions) {
  __m128 sums[kChains] = {}, a = _mm_set1_ps(0.5f);
  const __m128 b = _mm_set1_ps(0.25f);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m128& sum : sums) {
      Hide(a);
      sum = _mm_add_ps(sum, _mm_mul_ps(a, b));
    }
  }
#pragma GCC unroll 16
  for (__m128& sum : sums) Hide(sum);
}

#define INLAY_AVX2 __attribute__((target("avx2,fma")))
#define INLAY_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#define INLAY_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define INLAY_AVX_VNNI __attribute__((target("avx2,avxvnni")))

INLAY_AVX2 void ReadAvx2(const uint64_t* words, size_t num_words) {
  __m256i sums[8] = {};
  for (size_t i = 0; i < num_words; i += 32) {
#pragma GCC unroll 16
    for (size_t k = 0; k < 8; ++k) {
      const __m256i* address = reinterpret_cast<const __m256i*>(words + i + 4 * k);
      sums[k] = _mm256_xor_si256(sums[k], _mm256_loadu_si256(address));
    }
  }
#pragma GCC unroll 16
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

INLAY_AVX2 void Int8Avx2(uint64_t repetitions) {
  __m256i sums[kChains] = {}, a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(a));
      const __m256i pairs = _mm256_maddubs_epi16(a, b);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
  }
#pragma GCC unroll 16
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

INLAY_AVX2 void F32Avx2(uint64_t repetitions) {
  __m256 sums[kChains] = {};
  const __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(a, b, sum);
      asm volatile("" : "+x"(sum));
    }
  }
#pragma GCC unroll 16
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));
}

INLAY_AVX_VNNI void Int8AvxVnni(uint64_t repetitions) {
  __m256i sums[kChains] = {};
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m256i& sum : sums) {
      sum = _mm256_dpbusd_avx_epi32(sum, a, b);
      asm volatile("" : "+x"(sum));
    }
  }
#pragma GCC unroll 16
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

INLAY_AVX512 void ReadAvx512(const uint64_t* words, size_t num_words) {
  __m512i sums[8] = {};
  for (size_t i = 0; i < num_words; i += 64) {
#pragma GCC unroll 16
    for (size_t k = 0; k < 8; ++k)
      sums[k] = _mm512_xor_si512(sums[k], _mm512_loadu_si512(words + i + 8 * k));
  }
#pragma GCC unroll 16
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
}

INLAY_AVX512 void Int8Avx512(uint64_t repetitions) {
  __m512i sums[kChains] = {}, a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(5), ones = _mm512_set1_epi16(1);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m512i& sum : sums) {
      asm volatile("" : "+v"(a));
      const __m512i pairs = _mm512_maddubs_epi16(a, b);
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, ones));
    }
  }
#pragma GCC unroll 16
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
}

INLAY_VNNI void Int8Vnni(uint64_t repetitions) {
  __m512i sums[kChains] = {};
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, a, b);
      asm volatile("" : "+v"(sum));
    }
  }
#pragma GCC unroll 16
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
}

INLAY_AVX512 void F32Avx512(uint64_t repetitions) {
  __m512 sums[kChains] = {};
  const __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(a, b, sum);
      asm volatile("" : "+v"(sum));
    }
  }
#pragma GCC unroll 16
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
}

bool HasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & (1u << 4)) != 0;
}

#else  // Another processor: what the compiler makes of plain loops.

void Int8Generic(uint64_t repetitions) {
  volatile int8_t a = 3;
  int32_t sums[kChains] = {};
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (int32_t& sum : sums) sum += a * 5;
  }
#pragma GCC unroll 16
  for (int32_t& sum : sums) asm volatile("" : "+r"(sum));
}

void F32Generic(uint64_t repetitions) {
  volatile float a = 0.5f;
  float sums[kChains] = {};
  for (uint64_t i = 0; i < repetitions; ++i) {
#pragma GCC unroll 16
    for (float& sum : sums) sum += a * 0.25f;
  }
#pragma GCC unroll 16
  for (float& sum : sums) Hide(sum);
}

#endif

}  // namespace

std::vector<LimitKernel> LimitKernels() {
#if defined(__x86_64__)
  std::vector<LimitKernel> kernels = {
      {"generic", ReadGeneric, Int8Generic, kChains * 8 * 2, F32Generic, kChains * 4 * 2}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back({"avx2", ReadAvx2, Int8Avx2, kChains * 32 * 2, F32Avx2, kChains * 8 * 2});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasAvxVnni())
    kernels.push_back(
        {"avx_vnni", ReadAvx2, Int8AvxVnni, kChains * 32 * 2, F32Avx2, kChains * 8 * 2});
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512)
    kernels.push_back(
        {"avx512", ReadAvx512, Int8Avx512, kChains * 64 * 2, F32Avx512, kChains * 16 * 2});
  if (avx512 && __builtin_cpu_supports("avx512vnni"))
    kernels.push_back(
        {"avx512_vnni", ReadAvx512, Int8Vnni, kChains * 64 * 2, F32Avx512, kChains * 16 * 2});
  return kernels;
#else
  return {{"generic", ReadGeneric, Int8Generic, kChains * 2, F32Generic, kChains * 2}};
#endif
}

}  // namespace bench
