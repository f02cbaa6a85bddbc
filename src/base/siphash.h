// SipHash-2-4 with a 128-bit result: a keyed hash that outsiders cannot steer without the key.
// Paper: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, and its 128-bit
// extension.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

struct Hash128 {
  uint64_t low = 0;   // result bytes 0 to 7, little-endian
  uint64_t high = 0;  // result bytes 8 to 15

  friend bool operator==(const Hash128& a, const Hash128& b) {
    return a.low == b.low && a.high == b.high;
  }
};

// Hashes the concatenation of what Update is given. Finish ends it; the object is spent then.
class SipHasher {
 public:
  SipHasher(uint64_t key_low, uint64_t key_high);

  void Update(const void* data, size_t size);
  void UpdateU64(uint64_t value) { Update(&value, sizeof(value)); }
  Hash128 Finish();

 private:
  void Compress(uint64_t word);

  uint64_t v0_, v1_, v2_, v3_;
  uint64_t tail_ = 0;  // the bytes that do not fill a word yet, first byte lowest
  uint64_t size_ = 0;
};

}  // namespace llm
