// XXH64 with seed 0 (the xxHash specification): a checksum against damage, not against an
// adversary.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

// Of bytes fed in any pieces; the result depends on their sequence alone.
class Xxh64 {
 public:
  void Add(const void* data, size_t size);
  uint64_t Digest() const;

 private:
  static constexpr size_t kStripeBytes = 32;

  uint64_t lanes_[4] = {0x60EA27EEADC0B5D6u, 0xC2B2AE3D27D4EB4Fu, 0, 0x61C8864E7A143579u};
  unsigned char pending_[kStripeBytes] = {};  // less than a stripe
  size_t num_pending_ = 0;
  uint64_t total_bytes_ = 0;
};

inline uint64_t Checksum(const void* data, size_t size) {
  Xxh64 hash;
  hash.Add(data, size);
  return hash.Digest();
}

}  // namespace llm
