// A tokenizer holds what it says it holds (llm_plan tells it), and nothing of what it was made
// from.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/tokenizer/tokenizer.h"
#include "tests/faults/fault_malloc.h"
#include "tests/unit/tokenizer/tiny_specs.h"

namespace llm {
namespace {

// Beside the tables, whatever their size: the pre-tokenizer's pattern and small lists.
constexpr int64_t kFixed = 64 << 10;

void ExpectHoldsWhatItSays(TokenizerSpec made) {
  const int64_t before = NumLiveBytes();
  int64_t held = 0;
  uint64_t told = 0;
  {
    TokenizerSpec spec = made;
    const auto tokenizer = Tokenizer::Create(std::move(spec));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    spec = TokenizerSpec();
    held = NumLiveBytes() - before;
    told = (*tokenizer)->size_bytes();
  }
  EXPECT_LE(held, static_cast<int64_t>(told) + kFixed);
  EXPECT_EQ(NumLiveBytes(), before);
}

TEST(TokenizerMemoryTest, ABpeTokenizerKeepsNoListThatItWasMadeFrom) {
  TokenizerSpec spec = TinyBpeSpec();
  for (char a = '!'; a <= '~'; ++a) {
    for (char b = '!'; b <= '~'; ++b) AddMerge(std::string(1, a), std::string(1, b), &spec);
  }
  ExpectHoldsWhatItSays(std::move(spec));
}

TEST(TokenizerMemoryTest, AnSpmTokenizerKeepsNoListThatItWasMadeFrom) {
  TokenizerSpec spec = TinySpmSpec(true);
  for (int i = 0; i < 20000; ++i) AddPiece("piece" + std::to_string(i), -1.0f, &spec);
  ExpectHoldsWhatItSays(std::move(spec));
}

}  // namespace
}  // namespace llm
