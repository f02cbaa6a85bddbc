// XXH64 against the values that the PyPI package xxhash gives.
#include "src/base/xxh64.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace llm {
namespace {

class Xxh64Test : public testing::Test {
 protected:
  Xxh64Test() {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<unsigned char>(i * 7 + 3);
  }
  std::array<unsigned char, 101> bytes_;
};

TEST_F(Xxh64Test, GivesTheValuesOfAnotherImplementation) {
  constexpr std::pair<size_t, uint64_t> kGolden[] = {
      {0, 0xef46db3751d8e999u},  {1, 0x1f25c8d0bc1f4bb6u},  {3, 0x31d2363f52e564c9u},
      {8, 0xdab99d95c6f90092u},  {31, 0xa2aa5f33cc4a6119u}, {32, 0x23c3c17ef790fd97u},
      {33, 0x50a7cfc7ba588784u}, {64, 0x0eb64b3ef6eeb01fu}, {100, 0xa61f8d4c170fe531u},
      {101, 0xbad4d3bf033bda4cu}};
  for (const auto& [size, expected] : kGolden) {
    EXPECT_EQ(Checksum(bytes_.data(), size), expected) << size << " bytes";
  }
  EXPECT_EQ(Checksum("abc", 3), 0x44bc2cf5ad770999u);
}

TEST_F(Xxh64Test, DoesNotDependOnHowTheBytesAreCut) {
  for (size_t piece = 1; piece <= bytes_.size(); ++piece) {
    Xxh64 hash;
    for (size_t at = 0; at < bytes_.size(); at += piece) {
      hash.Add(bytes_.data() + at, std::min(piece, bytes_.size() - at));
    }
    EXPECT_EQ(hash.Digest(), 0xbad4d3bf033bda4cu) << "pieces of " << piece;
  }
}

}  // namespace
}  // namespace llm
