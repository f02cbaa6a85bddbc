// Philox4x32-10: a counter-based random generator; equal counter and key give equal numbers, in any
// order of asking. Paper: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace llm {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform in (0, 1), with 52 random bits; a function of (seed, position) alone.
double UniformAt(uint64_t seed, int64_t position);

}  // namespace llm
