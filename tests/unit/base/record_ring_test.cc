// Order, gaps, and that no reader ever sees half a record.
#include "src/base/record_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace llm {
namespace {

struct Record {
  uint64_t index = 0;
  uint64_t values[6] = {};  // all the same
};

Record Filled(uint64_t value) {
  Record record;
  for (uint64_t& each : record.values) each = value;
  return record;
}

std::vector<uint64_t> ReadAll(const RecordRing<Record>& ring, uint64_t* cursor,
                              size_t capacity = 100) {
  std::vector<uint64_t> indices;
  ring.Read(cursor, capacity, [&](const Record& record) { indices.push_back(record.index); });
  return indices;
}

TEST(RecordRingTest, GivesRecordsOnceAndInOrder) {
  RecordRing<Record> ring(8);
  uint64_t cursor = 0;
  EXPECT_TRUE(ReadAll(ring, &cursor).empty());
  for (int i = 0; i < 5; ++i) ring.Write(Filled(7));
  EXPECT_EQ(ReadAll(ring, &cursor, 2), (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(ReadAll(ring, &cursor), (std::vector<uint64_t>{2, 3, 4}));
  EXPECT_TRUE(ReadAll(ring, &cursor).empty());
}

TEST(RecordRingTest, ACursorThatFellBehindJumpsToTheOldestRecordLeft) {
  RecordRing<Record> ring(4);
  uint64_t cursor = 1;
  for (int i = 0; i < 11; ++i) ring.Write(Filled(7));
  EXPECT_EQ(ReadAll(ring, &cursor), (std::vector<uint64_t>{7, 8, 9, 10}));
}

TEST(RecordRingTest, ACursorBeyondTheEndWaitsForItsRecord) {
  RecordRing<Record> ring(4);
  uint64_t cursor = 3;
  ring.Write(Filled(7));
  EXPECT_TRUE(ReadAll(ring, &cursor).empty());
  EXPECT_EQ(cursor, 3u);
}

TEST(RecordRingTest, WritersAndReadersOnManyThreadsSeeWholeRecords) {
  RecordRing<Record> ring(16);
  constexpr uint64_t kWrites = 20000;
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&ring, writer] {
      for (uint64_t i = 0; i < kWrites; ++i) ring.Write(Filled(2 * i + writer));
    });
  }
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      uint64_t cursor = 0;
      uint64_t next = 0;
      while (!done.load()) {
        ring.Read(&cursor, 8, [&](const Record& record) {
          for (const uint64_t each : record.values) torn += each != record.values[0] ? 1 : 0;
          torn += record.index < next ? 1 : 0;
          next = record.index + 1;
        });
      }
    });
  }
  threads[0].join();
  threads[1].join();
  done = true;
  for (size_t i = 2; i < threads.size(); ++i) threads[i].join();
  EXPECT_EQ(torn.load(), 0);
}

}  // namespace
}  // namespace llm
