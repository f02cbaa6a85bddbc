// The emulated device finds broken rules, and only those: kernels that keep them give their results
// for every seed.
#include <numeric>

#include "gmock/gmock.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/rule_kernels.h"

namespace llm {
namespace {

class RulesTest : public GpuTest {};

std::vector<float> Counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST_F(RulesTest, ATreeOfSumsIsRightForEverySeed) {
  const DeviceFloats in(Counting(300));
  for (uint64_t seed = 1; seed < 20; ++seed) {
    gpu().Reset(seed);
    const DeviceFloats out(3);
    ExpectNoFault(LaunchTreeSum({in.get(), out.get(), 300}, 3, nullptr));
    EXPECT_THAT(out.Read(), testing::ElementsAre(8128.0f, 24512.0f, 12210.0f));
  }
}

TEST_F(RulesTest, AMissingBarrierIsARace) {
  const DeviceFloats in(Counting(128));
  const DeviceFloats out(1);
  ExpectFault(LaunchTreeSumWithoutBarrier({in.get(), out.get(), 128}, 1, nullptr),
              "with no barrier in between");
}

TEST_F(RulesTest, ASyncedWarpMayExchangeThroughSharedMemory) {
  const DeviceFloats in(Counting(32));
  const DeviceFloats out(32);
  ExpectNoFault(LaunchReverse({in.get(), out.get(), 32}, true, nullptr));
  EXPECT_EQ(out.Read()[3], 28.0f);
  // Whoever comes first reads what nobody wrote, or what another lane has just written.
  ExpectFault(LaunchReverse({in.get(), out.get(), 32}, false, nullptr), "shared byte");
}

TEST_F(RulesTest, UnwrittenSharedMemoryIsFound) {
  const DeviceFloats in(Counting(32));
  const DeviceFloats out(32);
  ExpectFault(LaunchReadUnwritten({in.get(), out.get(), 32}, nullptr),
              "thread 31: shared byte 124 is read, never written");
}

TEST_F(RulesTest, OneElementTooManyIsFound) {
  const DeviceFloats in(Counting(65));
  const DeviceFloats out(64);
  ExpectFault(LaunchOneTooMany({in.get(), out.get(), 64}, nullptr),
              "writes 4 bytes outside of every allocation");
  const DeviceFloats longer(65);
  ExpectNoFault(LaunchOneTooMany({in.get(), longer.get(), 64}, nullptr));
  ExpectFault(LaunchOneTooMany({in.get(), longer.get(), 65}, nullptr), "thread 65: reads 4 bytes");
}

TEST_F(RulesTest, HostMemoryIsNotTheDevices) {
  const std::vector<float> in(128);
  const DeviceFloats out(128);
  ExpectFault(LaunchOneTooMany({in.data(), out.get(), 127}, nullptr),
              "reads 4 bytes of the host's memory");
}

TEST_F(RulesTest, FreedMemoryIsNoLongerTheDevices) {
  const DeviceFloats out(1);
  float* freed = nullptr;
  {
    const DeviceFloats in(64);
    freed = in.get();
  }
  ExpectFault(LaunchOneTooMany({freed, out.get(), 0}, nullptr), "outside of every allocation");
}

TEST_F(RulesTest, SharedMemoryEndsWhereTheLaunchSaid) {
  const DeviceFloats in(Counting(32));
  const DeviceFloats out(32);
  ExpectFault(LaunchReadSharedBeyondEnd({in.get(), out.get(), 32}, nullptr),
              "at shared byte 128 of 128");
}

TEST_F(RulesTest, AWarpOperationNeedsAllOfItsLanes) {
  const DeviceFloats in(Counting(32));
  const DeviceFloats out(32);
  ExpectFault(LaunchShuffleOfHalf({in.get(), out.get(), 32}, nullptr), "threads wait for ever");
  ExpectFault(LaunchBarrierOfHalf({in.get(), out.get(), 32}, nullptr), "threads wait for ever");
}

TEST_F(RulesTest, VectorsMustBeAligned) {
  const DeviceFloats in(Counting(8));
  const DeviceFloats out(1);
  ExpectFault(LaunchMisaligned({in.get(), out.get(), 8}, nullptr), "is not a multiple of 16");
}

TEST_F(RulesTest, AnAsynchronousCopyArrivesWhenItIsWaitedFor) {
  const DeviceFloats in(Counting(512));
  const DeviceFloats out(512);
  const RuleArgs args = {in.get(), out.get(), 512};
  ExpectNoFault(LaunchAsyncCopy(args, AsyncFault::kNone, nullptr));
  EXPECT_EQ(out.Read(), Counting(512));
  ExpectFault(LaunchAsyncCopy(args, AsyncFault::kNoWait, nullptr), "a copy is on its way");
  ExpectFault(LaunchAsyncCopy(args, AsyncFault::kNoCommit, nullptr), "a copy is on its way");
  ExpectFault(LaunchAsyncCopy(args, AsyncFault::kNoBarrier, nullptr), "shared byte");
}

TEST_F(RulesTest, ShufflesTakeTheLanesOfThePtxManual) {
  const DeviceFloats in(Counting(32));
  const DeviceFloats out(160);
  ExpectNoFault(LaunchShuffles({in.get(), out.get(), 32}, nullptr));
  const std::vector<float> result = out.Read();
  for (size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], static_cast<float>(lane % 16 < 3 ? lane : lane - 3)) << lane;
    EXPECT_EQ(result[32 + lane], static_cast<float>(lane + 3 < 32 ? lane + 3 : lane)) << lane;
    EXPECT_EQ(result[64 + lane], static_cast<float>(lane ^ 5)) << lane;
    EXPECT_EQ(result[96 + lane], 7.0f);
    EXPECT_EQ(result[128 + lane], 11.0f);  // 0, 3, ..., 30
  }
}

TEST_F(RulesTest, AtomicsAddUp) {
  const DeviceFloats out(std::vector<float>{5});
  ExpectNoFault(LaunchCount({nullptr, out.get(), 0}, nullptr));
  EXPECT_EQ(out.Read()[0], 5.0f + 3 * 96);
}

TEST_F(RulesTest, ThreadsAndBlocksAreNumberedAlongXThenYThenZ) {
  const DeviceFloats out(2 * 4 * 12);
  ExpectNoFault(LaunchIndices({nullptr, out.get(), 0}, nullptr));
  const std::vector<float> result = out.Read();
  for (size_t i = 0; i < 48; ++i) {
    EXPECT_EQ(result[2 * i], static_cast<float>(i / 12));
    EXPECT_EQ(result[2 * i + 1], static_cast<float>(i % 12));
  }
}

TEST_F(RulesTest, LaunchesBeyondTheDevicesLimitsAreRefused) {
  EXPECT_EQ(LaunchEmpty(dim3(1), dim3(1024), 0, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchEmpty(dim3(1), dim3(1025), 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchEmpty(dim3(1), dim3(32, 33), 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchEmpty(dim3(0), dim3(32), 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchEmpty(dim3(1, 65536), dim3(32), 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchEmpty(dim3(1), dim3(32), 99 * 1024, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchEmpty(dim3(1), dim3(32), 99 * 1024 + 1, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace llm
