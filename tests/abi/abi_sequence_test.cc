// Random sequences of API calls, a few here; INLAY_API_SEQUENCES says how many more, from seed
// INLAY_API_SEED on.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/fuzz/api_sequence.h"

namespace llm {
namespace {

uint64_t FromEnv(const char* name, uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

TEST(AbiSequenceTest, NoSequenceOfCallsBreaksAPromise) {
  const uint64_t first = FromEnv("INLAY_API_SEED", 1);
  const uint64_t count = FromEnv("INLAY_API_SEQUENCES", 100);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::fprintf(stderr, "seed %llu\r", static_cast<unsigned long long>(seed));
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(64 + random() % 1500);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    RunApiSequence(bytes.data(), bytes.size());
  }
}

}  // namespace
}  // namespace llm
