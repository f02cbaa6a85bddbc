// LLM_DEVICE_TABLE: what a table begins with that device code reads too, through constexpr
// functions. LLM_DEVICE_FUNCTION: what a function begins with that device code calls and that
// cannot be constexpr, since the host's tables that it reads are defined elsewhere.
#pragma once

#ifdef __CUDA_ARCH__
#define LLM_DEVICE_TABLE __device__ constexpr
#else
#define LLM_DEVICE_TABLE constexpr
#endif

#ifdef __CUDACC__
#define LLM_DEVICE_FUNCTION __host__ __device__
#else
#define LLM_DEVICE_FUNCTION
#endif
