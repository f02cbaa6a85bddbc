// Words are read in the machine's order, which is little-endian on every machine that we build for.
#include "src/base/siphash.h"

#include <bit>
#include <cstring>

namespace llm {
namespace {

static_assert(std::endian::native == std::endian::little);

void Round(uint64_t& v0, uint64_t& v1, uint64_t& v2, uint64_t& v3) {
  v0 += v1;
  v1 = std::rotl(v1, 13) ^ v0;
  v0 = std::rotl(v0, 32);
  v2 += v3;
  v3 = std::rotl(v3, 16) ^ v2;
  v0 += v3;
  v3 = std::rotl(v3, 21) ^ v0;
  v2 += v1;
  v1 = std::rotl(v1, 17) ^ v2;
  v2 = std::rotl(v2, 32);
}

}  // namespace

// The four constants are the paper's; 0xee marks the 128-bit variant.
SipHasher::SipHasher(uint64_t key_low, uint64_t key_high)
    : v0_(key_low ^ 0x736f6d6570736575u),
      v1_(key_high ^ 0x646f72616e646f6du ^ 0xeeu),
      v2_(key_low ^ 0x6c7967656e657261u),
      v3_(key_high ^ 0x7465646279746573u) {}

void SipHasher::Compress(uint64_t word) {
  v3_ ^= word;
  for (int i = 0; i < 2; ++i) Round(v0_, v1_, v2_, v3_);
  v0_ ^= word;
}

void SipHasher::Update(const void* data, size_t size) {
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  size_t i = 0;
  if (size_ % 8 == 0) {
    for (; i + 8 <= size; i += 8) {
      uint64_t word;
      std::memcpy(&word, bytes + i, sizeof(word));
      Compress(word);
      size_ += 8;
    }
  }
  for (; i < size; ++i) {
    tail_ |= static_cast<uint64_t>(bytes[i]) << (8 * (size_ % 8));
    if (++size_ % 8 != 0) continue;
    Compress(tail_);
    tail_ = 0;
  }
}

Hash128 SipHasher::Finish() {
  Compress(tail_ | (size_ << 56));
  Hash128 result;
  v2_ ^= 0xeeu;
  for (int i = 0; i < 4; ++i) Round(v0_, v1_, v2_, v3_);
  result.low = v0_ ^ v1_ ^ v2_ ^ v3_;
  v1_ ^= 0xddu;
  for (int i = 0; i < 4; ++i) Round(v0_, v1_, v2_, v3_);
  result.high = v0_ ^ v1_ ^ v2_ ^ v3_;
  return result;
}

}  // namespace llm
