// Streams are asynchronous, events order them, memory is the device's, calls fail when told to.
#include <set>

#include "gmock/gmock.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/step_uploads.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/owned_uploads.h"
#include "tests/cuda_on_cpu/rule_kernels.h"

namespace llm {
namespace {

class StreamsTest : public GpuTest {
 protected:
  StreamOwner first_ = std::move(CreateStream()).value();
  StreamOwner second_ = std::move(CreateStream()).value();
  EventOwner event_ = std::move(CreateEvent()).value();
};

float Sum(const DeviceFloats& out) { return out.Read()[0]; }

// Whether it then happens early, beside what somebody else waits for, is drawn.
TEST_F(StreamsTest, NothingNeedHappenBeforeItIsWaitedFor) {
  const DeviceFloats in(std::vector<float>(128, 1.0f));
  DeviceFloats out(1);
  std::set<float> seen;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    gpu().Reset(seed);
    out.Write({0});
    ASSERT_EQ(LaunchTreeSum({in.get(), out.get(), 128}, 1, first_.get()), cudaSuccess);
    seen.insert(Sum(out));
    ASSERT_EQ(cudaStreamSynchronize(first_.get()), cudaSuccess);
    EXPECT_EQ(Sum(out), 128.0f);
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre(0.0f, 128.0f));
}

TEST_F(StreamsTest, AnEventCarriesOneStreamsWorkToAnother) {
  const DeviceFloats in(std::vector<float>(3 * 128, 1.0f));
  DeviceFloats sums(3);
  const DeviceFloats out(1);
  // What the second stream makes of the three sums of the first.
  const auto run = [&](uint64_t seed, bool wait) {
    gpu().Reset(seed);
    sums.Write({0, 0, 0});
    EXPECT_EQ(LaunchTreeSum({in.get(), sums.get(), 3 * 128}, 3, first_.get()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event_.get(), first_.get()), cudaSuccess);
    if (wait) {
      EXPECT_EQ(cudaStreamWaitEvent(second_.get(), event_.get(), 0), cudaSuccess);
    }
    EXPECT_EQ(LaunchTreeSum({sums.get(), out.get(), 3}, 1, second_.get()), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(second_.get()), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event_.get()), cudaSuccess);
    return Sum(out);
  };
  std::set<float> unordered;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    unordered.insert(run(seed, false));
    EXPECT_EQ(run(seed, true), 384.0f) << seed;
  }
  // Before, after, and while the blocks of the first run.
  EXPECT_THAT(unordered, testing::ElementsAre(0.0f, 128.0f, 256.0f, 384.0f));
}

TEST_F(StreamsTest, KernelsOfTwoStreamsTakeTurnsAtBarriers) {
  const DeviceFloats values(std::vector<float>{1, 2});
  const DeviceFloats out(3);
  // out[0] is written by both, out[1] is what the first reads back, out[2] the second.
  std::set<std::vector<float>> results;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    gpu().Reset(seed);
    ASSERT_EQ(LaunchWriteAndReadBack({values.get(), out.get(), 1}, first_.get()), cudaSuccess);
    ASSERT_EQ(LaunchWriteAndReadBack({values.get() + 1, out.get(), 2}, second_.get()), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    results.insert(out.Read());
  }
  EXPECT_THAT(results, testing::UnorderedElementsAre(
                           std::vector<float>{1, 1, 1}, std::vector<float>{1, 1, 2},
                           std::vector<float>{2, 1, 2}, std::vector<float>{2, 2, 2}));
}

TEST_F(StreamsTest, AnEventTellsHowFarItsStreamIs) {
  const DeviceFloats in(std::vector<float>(128, 1.0f));
  const DeviceFloats out(1);
  ASSERT_EQ(LaunchTreeSum({in.get(), out.get(), 128}, 1, first_.get()), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_.get(), first_.get()), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_.get()), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(event_.get()), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_.get()), cudaSuccess);
  EXPECT_EQ(Sum(out), 128.0f);
}

TEST_F(StreamsTest, PinnedMemoryIsReadWhenTheStreamComesToIt) {
  PinnedMemoryOwner pinned = std::move(AllocatePinned(4, "test")).value();
  const DeviceFloats out(1);
  float* host = static_cast<float*>(pinned.get());
  *host = 1;
  float pageable = 1;
  const DeviceFloats from_pageable(1);
  ASSERT_EQ(cudaMemcpyAsync(out.get(), host, 4, cudaMemcpyHostToDevice, first_.get()), cudaSuccess);
  ASSERT_EQ(
      cudaMemcpyAsync(from_pageable.get(), &pageable, 4, cudaMemcpyHostToDevice, first_.get()),
      cudaSuccess);
  *host = pageable = 2;
  ASSERT_EQ(cudaStreamSynchronize(first_.get()), cudaSuccess);
  EXPECT_EQ(out.Read()[0], 2.0f);
  EXPECT_EQ(from_pageable.Read()[0], 1.0f);
}

TEST_F(StreamsTest, CopiesNeedMemoryOfTheirKind) {
  const DeviceFloats out(4);
  float host[8] = {};
  EXPECT_EQ(cudaMemcpyAsync(out.get(), host, 20, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);  // longer than the allocation
  EXPECT_EQ(cudaMemcpyAsync(host, host + 4, 16, cudaMemcpyDeviceToHost, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(out.get(), out.get(), 16, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
}

TEST_F(StreamsTest, EveryCallCanFail) {
  const DeviceFloats in(std::vector<float>(128, 1.0f));
  const DeviceFloats out(1);
  gpu().FailCall(1, cudaErrorMemoryAllocation);
  const auto first = AllocateDevice(16, "first");
  EXPECT_TRUE(first.ok());
  const absl::Status status = AllocateDevice(16, "second").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "second: 16 bytes of device memory: cudaErrorMemoryAllocation: cudaErrorMemoryAllocation");
  EXPECT_TRUE(AllocateDevice(16, "third").ok());
  gpu().FailCall(0, cudaErrorUnknown);
  EXPECT_EQ(LaunchTreeSum({in.get(), out.get(), 128}, 1, nullptr), cudaErrorUnknown);
}

TEST_F(StreamsTest, AFaultSticksUntilTheDeviceIsReset) {
  const DeviceFloats in(std::vector<float>(64, 1.0f));
  const DeviceFloats out(64);
  EXPECT_EQ(LaunchOneTooMany({in.get(), out.get(), 64}, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(LaunchEmpty(dim3(1), dim3(32), 0, nullptr), cudaErrorIllegalAddress);
  const absl::Status status = CudaStatus("step", cudaDeviceSynchronize());
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("outside of every allocation"), std::string::npos);
}

TEST_F(StreamsTest, MemoryHasALimit) {
  const absl::Status status = AllocateDevice(size_t{1} << 40, "weights").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(StreamsTest, OnlyTimedEventsThatHavePassedTellATime) {
  const EventOwner begin = std::move(CreateTimedEvent()).value();
  const EventOwner end = std::move(CreateTimedEvent()).value();
  const EventOwner untimed = std::move(CreateEvent()).value();
  const DeviceFloats out(std::vector<float>{0}), in(std::vector<float>(100, 1.0f));
  float milliseconds = 0;
  ASSERT_EQ(cudaEventRecord(begin.get(), first_.get()), cudaSuccess);
  ASSERT_EQ(LaunchTreeSum({in.get(), out.get(), 100}, 1, first_.get()), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end.get(), first_.get()), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), cudaErrorNotReady);
  ASSERT_EQ(cudaEventSynchronize(end.get()), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), cudaSuccess);
  EXPECT_EQ(milliseconds, 1.0f);
  ASSERT_EQ(cudaEventRecord(untimed.get(), first_.get()), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(untimed.get()), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin.get(), untimed.get()),
            cudaErrorInvalidResourceHandle);
}

using StepUploadsTest = StreamsTest;

TEST_F(StepUploadsTest, ASpanIsCopiedOnceAStepAndAgainInTheNext) {
  const OwnedUploads owned = std::move(OwnedUploads::Create(1024)).value();
  StepUploads* uploads = owned.uploads.get();
  std::vector<float> host(100, 1.0f);
  const auto upload = [&] {
    return std::move(uploads->Upload(first_.get(), absl::MakeConstSpan(host))).value();
  };
  const DeviceFloats out(std::vector<float>{0});
  ASSERT_TRUE(uploads->Begin(/*ahead=*/false).ok());
  const float* copy = upload();
  EXPECT_EQ(upload(), copy);
  ASSERT_EQ(LaunchTreeSum({copy, out.get(), 100}, 1, first_.get()), cudaSuccess);
  // The step after the next one copies through the same pinned memory while these are still to
  // come.
  ASSERT_TRUE(uploads->Begin(/*ahead=*/false).ok());
  host.assign(100, 2.0f);
  const DeviceFloats later(std::vector<float>{0}), last(std::vector<float>{0});
  ASSERT_EQ(LaunchTreeSum({upload(), later.get(), 100}, 1, first_.get()), cudaSuccess);
  ASSERT_TRUE(uploads->Begin(/*ahead=*/false).ok());
  host.assign(100, 3.0f);
  ASSERT_EQ(LaunchTreeSum({upload(), last.get(), 100}, 1, first_.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(first_.get()), cudaSuccess);
  EXPECT_EQ(Sum(out), 100.0f);
  EXPECT_EQ(Sum(later), 200.0f);
  EXPECT_EQ(Sum(last), 300.0f);
}

// Its copies are made while the kernels before it have still to read theirs, and replace them only
// behind these; the third step's go where the first one's were.
TEST_F(StepUploadsTest, AStepThatBeginsAheadCopiesMeanwhile) {
  const OwnedUploads owned = std::move(OwnedUploads::Create(1024)).value();
  StepUploads* uploads = owned.uploads.get();
  std::vector<float> host(100);
  std::vector<DeviceFloats> outs;
  for (int step = 1; step <= 5; ++step) {
    ASSERT_TRUE(uploads->Begin(/*ahead=*/step > 1).ok());
    host.assign(100, static_cast<float>(step));
    outs.emplace_back(std::vector<float>{0});
    const float* copy = std::move(uploads->Upload(first_.get(), absl::MakeConstSpan(host))).value();
    ASSERT_EQ(LaunchTreeSum({copy, outs.back().get(), 100}, 1, first_.get()), cudaSuccess);
  }
  ASSERT_EQ(cudaStreamSynchronize(first_.get()), cudaSuccess);
  for (int step = 1; step <= 5; ++step) {
    EXPECT_EQ(Sum(outs[static_cast<size_t>(step) - 1]), 100.0f * static_cast<float>(step));
  }
}

TEST_F(StepUploadsTest, AStepThatCopiesTooMuchIsRefused) {
  const OwnedUploads owned = std::move(OwnedUploads::Create(1024)).value();
  StepUploads* uploads = owned.uploads.get();
  const std::vector<float> host(250);
  ASSERT_TRUE(uploads->Upload(first_.get(), absl::MakeConstSpan(host)).ok());
  EXPECT_EQ(uploads->Upload(first_.get(), absl::MakeConstSpan(host).subspan(1)).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace llm
