// When a pool's caller works alone.
#include "src/base/crowd_guard.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

constexpr int64_t kSlice = 3'000'000;

TEST(CrowdGuardTest, AWaitForAWorkerThatRunsIsNone) {
  CrowdGuard guard;
  guard.AddWait(1, 10 * kSlice, 10 * kSlice);
  guard.AddWait(1, 10 * kSlice, 5 * kSlice);
  EXPECT_FALSE(guard.crowded());
}

TEST(CrowdGuardTest, AShortWaitIsNone) {
  CrowdGuard guard;
  guard.AddWait(1, CrowdGuard::kMinWaitNs - 1, 0);
  EXPECT_FALSE(guard.crowded());
}

TEST(CrowdGuardTest, AWaitForAWorkerOffItsCoreSendsTheCallerOffAlone) {
  CrowdGuard guard;
  guard.AddWait(1000, kSlice, kSlice / 2 - 1);
  ASSERT_TRUE(guard.crowded());
  EXPECT_EQ(guard.alone_until_ns(), 1000 + CrowdGuard::kFirstAloneNs);
  guard.EndAlone();
  EXPECT_FALSE(guard.crowded());
}

TEST(CrowdGuardTest, WhileItStaysCrowdedTheTimesAloneDoubleUpToABound) {
  CrowdGuard guard;
  int64_t now_ns = 1;
  int64_t alone_ns = CrowdGuard::kFirstAloneNs;
  for (int i = 0; i < 10; ++i) {
    guard.AddWait(now_ns, kSlice, 0);
    EXPECT_EQ(guard.alone_until_ns() - now_ns, alone_ns);
    now_ns = guard.alone_until_ns() + kSlice;
    alone_ns = std::min(2 * alone_ns, CrowdGuard::kMostAloneNs);
  }
}

TEST(CrowdGuardTest, AfterACalmTimeItBeginsAnew) {
  CrowdGuard guard;
  guard.AddWait(1, kSlice, 0);
  guard.AddWait(guard.alone_until_ns() + 1, kSlice, 0);
  const int64_t now_ns = guard.alone_until_ns() + CrowdGuard::kCalmNs;
  guard.AddWait(now_ns, kSlice, 0);
  EXPECT_EQ(guard.alone_until_ns() - now_ns, CrowdGuard::kFirstAloneNs);
}

}  // namespace
}  // namespace llm
