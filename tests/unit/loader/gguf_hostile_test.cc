// A real file cut short at every length of its header, and with bits flipped: refused with a
// message or consistent.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/gguf_walk.h"

namespace llm {
namespace {

class HostileGgufTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream in(INLAY_TEST_DATA "/gguf/llama_h64-F32.gguf", std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(in), {});
    auto source = OpenGguf(MemoryModelFile(file_.data(), file_.size(), "tiny"), {});
    ASSERT_TRUE(source.ok()) << source.status();
    header_bytes_ = file_.size();
    for (const TensorInfo& tensor : (*source)->tensors()) {
      header_bytes_ = std::min<size_t>(header_bytes_, tensor.file_offset);
      data_end_ = std::max<size_t>(data_end_, tensor.file_offset + tensor.size_bytes);
    }
  }

  void ExpectRefusedAt(size_t length) {
    // A copy of exactly that length, so that a sanitizer sees a read beyond it.
    const std::vector<char> cut(file_.begin(), file_.begin() + static_cast<ptrdiff_t>(length));
    const absl::Status status =
        OpenGguf(MemoryModelFile(cut.data(), cut.size(), "cut"), {}).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << length << ": " << status;
    ASSERT_FALSE(status.message().empty()) << length;
  }

  // Flips 1 to 3 bits within [begin, end), `rounds` times.
  void FlipBits(size_t begin, size_t end, int rounds, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<size_t> bit(begin * 8, end * 8 - 1);
    std::uniform_int_distribution<int> num_bits(1, 3);
    for (int round = 0; round < rounds; ++round) {
      std::string flipped = file_.substr(0, data_end_);
      for (int i = num_bits(random); i > 0; --i) {
        const size_t at = bit(random);
        flipped[at / 8] = static_cast<char>(flipped[at / 8] ^ (1 << (at % 8)));
      }
      ASSERT_EQ(WalkGguf(flipped.data(), flipped.size()), "")
          << "seed " << seed << ", round " << round;
    }
  }

  std::string file_;
  size_t header_bytes_ = 0;
  size_t data_end_ = 0;
};

TEST_F(HostileGgufTest, IsRefusedAtEveryLengthOfTheHeader) {
  for (size_t length = 0; length <= header_bytes_; ++length) ExpectRefusedAt(length);
}

TEST_F(HostileGgufTest, IsRefusedWhereverItsDataIsCut) {
  for (size_t length = header_bytes_; length < data_end_; length += 997) ExpectRefusedAt(length);
  ExpectRefusedAt(data_end_ - 1);
  EXPECT_EQ(WalkGguf(file_.data(), data_end_), "");
}

TEST_F(HostileGgufTest, SurvivesFlippedBitsAnywhereInTheHeader) {
  FlipBits(0, header_bytes_, 4000, 1);
}

// A flip in the long vocabulary rarely does harm; these two parts hold the counts, lengths, types
// and offsets.
TEST_F(HostileGgufTest, SurvivesFlippedBitsInTheFirstEntries) { FlipBits(0, 600, 4000, 2); }

TEST_F(HostileGgufTest, SurvivesFlippedBitsInTheTensorTable) {
  const size_t table = file_.find("token_embd.weight");
  ASSERT_NE(table, std::string::npos);
  FlipBits(table, header_bytes_, 4000, 3);
}

}  // namespace
}  // namespace llm
