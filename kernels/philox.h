// Philox4x32-10: a counter-based random generator; equal counter and key give equal numbers, in any
// order of asking. Paper: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// Device code calls it too.
#pragma once

#include <array>
#include <cstdint>

namespace llm {

// Ten rounds of two 32x32-bit multiplications, the key raised by fixed odd constants between
// rounds.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kKeyStep0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kKeyStep1 = 0xBB67AE85;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kKeyStep0;
    key[1] += kKeyStep1;
  }
  return counter;
}

// 64 random bits; a function of (seed, position) alone.
constexpr uint64_t RandomBits(uint64_t seed, int64_t position) {
  const uint64_t counter = static_cast<uint64_t>(position);
  const std::array<uint32_t, 4> words =
      Philox4x32({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return static_cast<uint64_t>(words[1]) << 32 | words[0];
}

}  // namespace llm
