// SipHash-2-4-128 against the values of its authors' test program (also what `openssl mac SIPHASH`
// answers).
#include "src/base/siphash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace llm {
namespace {

std::string Hex(const Hash128& hash) {
  std::string bytes(16, '\0');
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(hash.low >> (8 * i));
    bytes[8 + i] = static_cast<char>(hash.high >> (8 * i));
  }
  return absl::BytesToHexString(bytes);
}

// Bytes 0, 1, 2, ... under the key 00 01 .. 0f.
std::string HashOfCounting(size_t size, size_t first_update) {
  std::vector<unsigned char> data(size);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(0));
  SipHasher hasher(0x0706050403020100, 0x0f0e0d0c0b0a0908);
  hasher.Update(data.data(), first_update);
  hasher.Update(data.data() + first_update, size - first_update);
  return Hex(hasher.Finish());
}

TEST(SipHasherTest, GivesThePublishedValues) {
  EXPECT_EQ(HashOfCounting(0, 0), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(HashOfCounting(1, 0), "da87c1d86b99af44347659119b22fc45");
  EXPECT_EQ(HashOfCounting(2, 0), "8177228da4a45dc7fca38bdef60affe4");
  EXPECT_EQ(HashOfCounting(15, 0), "5493e99933b0a8117e08ec0f97cfc3d9");
  EXPECT_EQ(HashOfCounting(63, 0), "5150d1772f50834a503e069a973fbd7c");
}

TEST(SipHasherTest, DoesNotDependOnHowTheInputIsCut) {
  for (size_t cut = 0; cut <= 63; ++cut) {
    EXPECT_EQ(HashOfCounting(63, cut), "5150d1772f50834a503e069a973fbd7c") << cut;
  }
}

}  // namespace
}  // namespace llm
