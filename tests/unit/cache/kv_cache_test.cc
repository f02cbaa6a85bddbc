// Where layers' blocks lie, and what a block copy moves.
#include "src/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace llm {
namespace {

constexpr size_t kBlockBytes = 64;

std::unique_ptr<KvCache> MakeCache(Allocator* allocator) {
  auto cache = KvCache::Create(allocator, {{0, {0, 2}}, {8, {1}}}, {3, 2}, kBlockBytes);
  EXPECT_TRUE(cache.ok()) << cache.status();
  return std::move(cache).value();
}

TEST(KvCacheTest, HoldsExactlyTheBlocksOfEachLayerZeroed) {
  Allocator allocator;
  const auto cache = MakeCache(&allocator);
  EXPECT_EQ(cache->size_bytes(), (2 * 3 + 2) * kBlockBytes);
  EXPECT_EQ(allocator.allocated_bytes(), cache->size_bytes());
  EXPECT_EQ(cache->GroupOfLayer(1), 1);
  EXPECT_EQ(cache->GroupOfLayer(2), 0);
  EXPECT_EQ(cache->LayerBase(2) - cache->LayerBase(0), static_cast<ptrdiff_t>(3 * kBlockBytes));
  EXPECT_EQ(
      std::count(cache->LayerBase(0), cache->LayerBase(0) + cache->size_bytes(), std::byte{0}),
      static_cast<ptrdiff_t>(cache->size_bytes()));
}

TEST(KvCacheTest, CopiesABlockInEveryLayerOfItsGroupOnly) {
  Allocator allocator;
  const auto cache = MakeCache(&allocator);
  for (int layer = 0; layer < 3; ++layer) {
    std::fill_n(cache->LayerBase(layer), kBlockBytes, static_cast<std::byte>(layer + 1));
  }
  ASSERT_TRUE(cache->CopyBlock(0, 0, 2).ok());
  EXPECT_EQ(cache->LayerBase(0)[2 * kBlockBytes], std::byte{1});
  EXPECT_EQ(cache->LayerBase(2)[3 * kBlockBytes - 1], std::byte{3});
  EXPECT_EQ(cache->LayerBase(0)[kBlockBytes], std::byte{0});
  EXPECT_EQ(cache->LayerBase(1)[kBlockBytes], std::byte{0});
}

TEST(KvCacheTest, RefusesALayerInTwoGroups) {
  Allocator allocator;
  EXPECT_EQ(KvCache::Create(&allocator, {{0, {0}}, {8, {0}}}, {1, 1}, 64).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(KvCacheTest, RefusesSizesThatDoNotFit) {
  Allocator allocator;
  allocator.set_limit_bytes(1000);
  for (size_t block_bytes : {size_t{1000}, SIZE_MAX / 2}) {
    EXPECT_EQ(KvCache::Create(&allocator, {{0, {0, 1}}}, {2}, block_bytes).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(allocator.allocated_bytes(), 0u);
}

}  // namespace
}  // namespace llm
