// What this machine's processor and operating system can run.
#pragma once

namespace llm {

struct CpuFeatures {
  bool avx2 = false;         // AVX2, FMA and F16C
  bool avx512 = false;       // the above and AVX-512 F, BW, DQ, VL, VNNI
  bool avx512_bf16 = false;  // the above and BF16
};

// Asks the processor at each call; cheap enough for open, not for a step.
CpuFeatures DetectCpuFeatures();

}  // namespace llm
