// The table under the vocabulary and the merges: any hashes, also those that a hostile file chose.
#include "src/tokenizer/index_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace llm {
namespace {

constexpr uint32_t kNone = IndexTable::kNone;

TEST(IndexTableTest, FindsWhatWasInsertedWhateverTheHashes) {
  for (const uint64_t mask : {~uint64_t{0}, uint64_t{0xFF}, ~uint64_t{0} << 40, uint64_t{0}}) {
    constexpr uint32_t kEntries = 500;
    std::mt19937_64 random(7);
    std::map<uint32_t, uint64_t> hashes;  // by index
    IndexTable table(kEntries);
    for (uint32_t index = 0; index < kEntries; ++index) {
      hashes[index] = random() & mask;
      const auto is = [&](uint32_t other) { return other == index; };
      EXPECT_EQ(table.Find(hashes[index], is), kNone);
      EXPECT_EQ(table.FindOrInsert(hashes[index], index, is), kNone);
    }
    for (const auto& [index, hash] : hashes) {
      EXPECT_EQ(table.Find(hash, [i = index](uint32_t other) { return other == i; }), index);
      EXPECT_EQ(table.Find(hash, [](uint32_t) { return false; }), kNone);
    }
  }
}

TEST(IndexTableTest, KeepsTheFirstOfEqualKeys) {
  IndexTable table(3);
  const auto any = [](uint32_t) { return true; };
  EXPECT_EQ(table.FindOrInsert(99, 7, any), kNone);
  EXPECT_EQ(table.FindOrInsert(99, 8, any), 7u);
  EXPECT_EQ(table.Find(99, any), 7u);
}

TEST(IndexTableTest, TellsTheGreatestIndexOfAnyHashFromAnEmptySlot) {
  IndexTable table(1);
  const auto any = [](uint32_t) { return true; };
  EXPECT_EQ(table.Find(~uint64_t{0}, any), kNone);
  EXPECT_EQ(table.FindOrInsert(~uint64_t{0}, IndexTable::kMaxEntries - 1, any), kNone);
  EXPECT_EQ(table.Find(~uint64_t{0}, any), IndexTable::kMaxEntries - 1);
}

TEST(IndexTableTest, AsksOnlyAboutKeysWhoseHashMayBeTheSame) {
  IndexTable table(100);
  for (uint32_t index = 0; index < 100; ++index) {  // one slot after the other, different tags
    table.FindOrInsert(index, index, [](uint32_t) { return false; });
  }
  int num_asked = 0;
  table.Find(55, [&](uint32_t index) {
    ++num_asked;
    return index == 55;
  });
  EXPECT_EQ(num_asked, 1);
}

}  // namespace
}  // namespace llm
