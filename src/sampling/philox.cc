// Ten rounds of two 32x32-bit multiplications, the key raised by fixed odd constants between
// rounds.
#include "src/sampling/philox.h"

namespace llm {
namespace {

constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kKeyStep0 = 0x9E3779B9;  // golden ratio
constexpr uint32_t kKeyStep1 = 0xBB67AE85;  // sqrt(3) - 1
constexpr int kRounds = 10;

uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1),
               High(product0) ^ counter[3] ^ key[1], Low(product0)};
    key[0] += kKeyStep0;
    key[1] += kKeyStep1;
  }
  return counter;
}

double UniformAt(uint64_t seed, int64_t position) {
  const uint64_t counter = static_cast<uint64_t>(position);
  const std::array<uint32_t, 4> words =
      Philox4x32({Low(counter), High(counter), 0, 0}, {Low(seed), High(seed)});
  const uint64_t bits = (static_cast<uint64_t>(words[1]) << 32 | words[0]) >> 12;
  // 52 bits and a half: the middle of its interval is exact in a double, and is neither 0 nor 1.
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

}  // namespace llm
