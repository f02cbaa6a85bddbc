// LLM_DEVICE_TABLE: what a table begins with that device code reads too, through constexpr
// functions.
#pragma once

#ifdef __CUDA_ARCH__
#define LLM_DEVICE_TABLE __device__ constexpr
#else
#define LLM_DEVICE_TABLE constexpr
#endif
