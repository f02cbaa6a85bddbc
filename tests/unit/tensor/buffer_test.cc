#include "src/tensor/buffer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace llm {
namespace {

TEST(BufferTest, IsAlignedToACacheLineAndCountedWhileItLives) {
  Allocator allocator;
  {
    absl::StatusOr<Buffer> buffer = Buffer::Allocate(&allocator, 100, "scratch");
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(buffer->size(), 100u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    EXPECT_EQ(allocator.allocated_bytes(), 100u);
  }
  EXPECT_EQ(allocator.allocated_bytes(), 0u);
}

TEST(BufferTest, OfSizeZeroTakesNoMemory) {
  Allocator allocator;
  absl::StatusOr<Buffer> buffer = Buffer::Allocate(&allocator, 0, "nothing");
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_EQ(allocator.allocated_bytes(), 0u);
}

TEST(BufferTest, MovesWithoutBeingFreedTwice) {
  Allocator allocator;
  absl::StatusOr<Buffer> first = Buffer::Allocate(&allocator, 64, "first");
  absl::StatusOr<Buffer> second = Buffer::Allocate(&allocator, 32, "second");
  ASSERT_TRUE(first.ok() && second.ok());
  std::byte* const memory = first->data();
  *second = *std::move(first);
  EXPECT_EQ(second->data(), memory);
  EXPECT_EQ(allocator.allocated_bytes(), 64u);
  second->Reset();
  second->Reset();
  EXPECT_EQ(allocator.allocated_bytes(), 0u);
}

TEST(BufferTest, ComesAsZerosWhereThatIsAsked) {
  Allocator::Hooks hooks;
  hooks.allocate = [](void*, size_t bytes, size_t alignment) {
    void* memory = std::aligned_alloc(alignment, (bytes + 63) / 64 * 64);
    std::memset(memory, 7, bytes);
    return memory;
  };
  hooks.deallocate = [](void*, void* memory, size_t) { std::free(memory); };
  Allocator own, lent(hooks);
  for (Allocator* allocator : {&own, &lent}) {
    for (const size_t size : {size_t{1000}, size_t{5} << 20}) {
      absl::StatusOr<Buffer> buffer = Buffer::AllocateZeroed(allocator, size, "zeros");
      ASSERT_TRUE(buffer.ok()) << buffer.status();
      const char* bytes = buffer->As<char>();
      EXPECT_TRUE(std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; }));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
      buffer->AdviseHugePages();
    }
    EXPECT_EQ(allocator->allocated_bytes(), 0u);
  }
}

TEST(AllocatorTest, GivesExactlyItsLimitAndNotAByteMore) {
  Allocator allocator;
  allocator.set_limit_bytes(256);
  absl::StatusOr<Buffer> half = Buffer::Allocate(&allocator, 128, "half");
  ASSERT_TRUE(half.ok()) << half.status();
  absl::StatusOr<Buffer> beyond = Buffer::Allocate(&allocator, 129, "KV pool");
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(beyond.status().message()), testing::HasSubstr("KV pool"));
  EXPECT_THAT(std::string(beyond.status().message()), testing::HasSubstr("129 bytes"));
  EXPECT_EQ(allocator.allocated_bytes(), 128u);
  absl::StatusOr<Buffer> rest = Buffer::Allocate(&allocator, 128, "rest");
  EXPECT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(allocator.allocated_bytes(), 256u);
}

TEST(AllocatorTest, RefusesASizeThatWouldWrapItsCounter) {
  Allocator limited;
  limited.set_limit_bytes(1000);
  absl::StatusOr<Buffer> held = Buffer::Allocate(&limited, 10, "held");
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(Buffer::Allocate(&limited, SIZE_MAX, "too much").ok());
  EXPECT_FALSE(Buffer::Allocate(&limited, SIZE_MAX - 9, "too much").ok());
  EXPECT_EQ(limited.allocated_bytes(), 10u);
  Allocator unlimited;
  EXPECT_FALSE(Buffer::Allocate(&unlimited, SIZE_MAX, "too much").ok());
  EXPECT_EQ(unlimited.allocated_bytes(), 0u);
}

struct HostCounts {
  int allocations = 0;
  int deallocations = 0;
  size_t freed_bytes = 0;
};

TEST(AllocatorTest, UsesTheHooksOfTheHostForEveryByte) {
  HostCounts counts;
  Allocator::Hooks hooks;
  hooks.user_data = &counts;
  hooks.allocate = [](void* user_data, size_t bytes, size_t alignment) -> void* {
    ++static_cast<HostCounts*>(user_data)->allocations;
    return bytes > 1000 ? nullptr : std::aligned_alloc(alignment, 1024);
  };
  hooks.deallocate = [](void* user_data, void* memory, size_t bytes) {
    ++static_cast<HostCounts*>(user_data)->deallocations;
    static_cast<HostCounts*>(user_data)->freed_bytes += bytes;
    std::free(memory);
  };
  Allocator allocator(hooks);
  {
    EXPECT_TRUE(Buffer::Allocate(&allocator, 500, "small").ok());
    EXPECT_FALSE(Buffer::Allocate(&allocator, 1001, "large").ok());
  }
  EXPECT_EQ(counts.allocations, 2);
  EXPECT_EQ(counts.deallocations, 1);
  EXPECT_EQ(counts.freed_bytes, 500u);
  EXPECT_EQ(allocator.allocated_bytes(), 0u);
}

}  // namespace
}  // namespace llm
