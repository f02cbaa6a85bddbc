// Four lanes that do not wait for each other: some 10 GB/s without vector instructions.
#include "src/base/xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace llm {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

template <typename Word>
Word Load(const unsigned char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

uint64_t Round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

uint64_t Merge(uint64_t hash, uint64_t lane) { return (hash ^ Round(0, lane)) * kPrime1 + kPrime4; }

uint64_t Tail(uint64_t hash, const unsigned char* data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    hash = std::rotl(hash ^ Round(0, Load<uint64_t>(data)), 27) * kPrime1 + kPrime4;
  }
  if (size >= 4) {
    hash = std::rotl(hash ^ Load<uint32_t>(data) * kPrime1, 23) * kPrime2 + kPrime3;
    data += 4;
    size -= 4;
  }
  for (; size > 0; ++data, --size) hash = std::rotl(hash ^ *data * kPrime5, 11) * kPrime1;
  return hash;
}

}  // namespace

void Xxh64::Add(const void* data, size_t size) {
  const unsigned char* from = static_cast<const unsigned char*>(data);
  total_bytes_ += size;
  const auto stripe = [this](const unsigned char* at) {
    for (int i = 0; i < 4; ++i) lanes_[i] = Round(lanes_[i], Load<uint64_t>(at + 8 * i));
  };
  if (num_pending_ > 0) {
    const size_t part = std::min(size, kStripeBytes - num_pending_);
    std::memcpy(pending_ + num_pending_, from, part);
    num_pending_ += part;
    from += part;
    size -= part;
    if (num_pending_ < kStripeBytes) return;
    stripe(pending_);
    num_pending_ = 0;
  }
  for (; size >= kStripeBytes; from += kStripeBytes, size -= kStripeBytes) stripe(from);
  if (size > 0) std::memcpy(pending_, from, size);
  num_pending_ = size;
}

uint64_t Xxh64::Digest() const {
  uint64_t hash = kPrime5;
  if (total_bytes_ >= kStripeBytes) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = Merge(hash, lane);
  }
  hash = Tail(hash + total_bytes_, pending_, num_pending_);
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace llm
