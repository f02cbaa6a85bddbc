// Activations rounded to bf16 times BF16 weights: vdpbf16ps where the processor has it, two fmas
// with the same bits where it has not.
//
// The instruction adds the product of the second column of a pair, then that of the first, each
// with one rounding, and takes subnormal inputs and results for zero. Products of two bf16 are
// exact in f32, so that an fma does the same once the processor is told to flush (generic, which
// multiplies and adds, does where no product is subnormal). The instruction's floor is half that of
// f32: 32 products, two a cycle on Zen 5.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/linear_blocks.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace llm::LLM_CPU_ISA {

void RunLinearBF16(const LinearTask& task);

namespace {

// `out` has room for whole sixteens; those beyond cols become zero.
LLM_SIMD void RoundRow(const float* values, int cols, uint16_t* out) {
  for (int k = 0; k < cols; k += 16) {
    StoreBF16(out + k, cols - k >= 16 ? Load(values + k) : Load(values + k, cols - k));
  }
}

#if defined(LLM_CPU_ISA_AVX512BF16)

struct RoundedPairs {
  struct Step {
    using Weights = __m512i;
    static constexpr int kBytes = 4 * kPackTileRows;
    static constexpr int kFloats = 1;  // the place of a pair
    template <int kFloat>
    LLM_SIMD __m512i LoadStep(const uint8_t* p) {
      return _mm512_loadu_si512(p);
    }
    LLM_SIMD __m512i Broadcast(const float* a) { return _mm512_castps_si512(_mm512_set1_ps(*a)); }
    LLM_SIMD F32x16 Multiply(__m512i a, __m512i w, F32x16 acc) {
      return {_mm512_dpbf16_ps(acc.v, (__m512bh)w, (__m512bh)a)};
    }
  };
  static constexpr int kStepCols = 2;
  static constexpr bool kUsesPanel = false;
  LLM_SIMD void Gather(const float* values, int cols, float* out) {
    RoundRow(values, cols, reinterpret_cast<uint16_t*>(out));
  }
};

#else

struct RoundedPairs {
  struct Step {
    using Weights = F32x16;
    static constexpr int kBytes = 4 * kPackTileRows;
    static constexpr int kFloats = 2;  // the second column, then the first
    template <int kFloat>
    LLM_SIMD F32x16 LoadStep(const uint8_t* p) {
      const uint16_t* pairs = reinterpret_cast<const uint16_t*>(p);
      return kFloat == 0 ? LoadBF16High(pairs) : LoadBF16Low(pairs);
    }
    LLM_SIMD F32x16 Broadcast(const float* a) { return Set(*a); }
    LLM_SIMD F32x16 Multiply(F32x16 a, F32x16 w, F32x16 acc) { return Fma(a, w, acc); }
  };
  static constexpr int kStepCols = 2;
  static constexpr bool kUsesPanel = false;
  LLM_SIMD void Gather(const float* values, int cols, float* out) {
    for (int k = 0; k < cols; k += 16) {
      uint16_t rounded[16];
      float wide[16];
      RoundRow(values + k, cols - k < 16 ? cols - k : 16, rounded);
      Store(wide, LoadBF16(rounded));
      for (int i = 0; i < 16; ++i) out[k + i] = wide[i ^ 1];
    }
  }
};

#endif

}  // namespace

void RunLinearBF16(const LinearTask& task) {
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x40;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushToZero | kDenormalsAreZero);
  RunSource<RoundedPairs>(task);
  _mm_setcsr(before);
#else
  RunSource<RoundedPairs>(task);
#endif
}

}  // namespace llm::LLM_CPU_ISA
