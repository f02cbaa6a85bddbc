// When a step is launched, recorded, replayed, and what is done where that fails.
#include "src/runner/graph_cache.h"

#include <new>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace llm {
namespace {

using testing::ElementsAre;

class NumberedGraph : public DeviceGraph {
 public:
  explicit NumberedGraph(int number_in) : number(number_in) {}
  const int number;
};

// Writes down what it is asked for, and fails at one kind of it.
class FakeStream : public DeviceStream {
 public:
  explicit FakeStream(std::vector<std::string>* calls) : calls_(*calls) {}
  absl::Status Begin(bool /*ahead*/) override { return absl::OkStatus(); }
  absl::Status CopyIn(void*, const void*, size_t) override { return absl::OkStatus(); }
  absl::Status CopyOut(void*, const void*, size_t) override { return absl::OkStatus(); }
  absl::Status CopyWithin(void*, const void*, size_t) override { return absl::OkStatus(); }
  absl::Status Clear(void*, size_t) override { return absl::OkStatus(); }
  absl::Status Wait() override { return absl::OkStatus(); }

  absl::Status BeginRecording() override { return Call("begin"); }
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() override {
    const absl::Status status = Call("end");
    if (!status.ok()) return status;
    return std::make_unique<NumberedGraph>(++num_graphs_);
  }
  absl::Status Launch(const DeviceGraph& graph) override {
    return Call("graph " + std::to_string(static_cast<const NumberedGraph&>(graph).number));
  }
  void FailAt(const std::string& call) { failing_ = call; }
  void ThrowAt(const std::string& call) { throwing_ = call; }

 private:
  absl::Status Call(const std::string& call) {
    calls_.push_back(call);
    if (call == throwing_) throw std::bad_alloc();
    return call == failing_ ? absl::InternalError("told to") : absl::OkStatus();
  }

  std::vector<std::string>& calls_;
  std::string failing_;
  std::string throwing_;
  int num_graphs_ = 0;
};

class GraphCacheTest : public testing::Test {
 protected:
  static GraphBucket Bucket(int rows) { return {.padding = {.rows = rows, .max_blocks = 1}}; }
  // What the stream and the step were asked for.
  std::vector<std::string> Run(int rows) {
    calls_.clear();
    const absl::Status status = cache_.Run(
        Bucket(rows),
        [&] {
          calls_.push_back("launch");
          return absl::OkStatus();
        },
        [&] {
          calls_.push_back("launch_largest");
          if (throws_) throw std::bad_alloc();
          return recorded_;
        });
    EXPECT_TRUE(status.ok()) << status;
    return calls_;
  }
  static StepPlan PlanOf(size_t rows, Sequence* sequence) {
    StepPlan plan;
    plan.chunks.assign(rows, {.sequence = sequence, .begin = 0, .length = 1, .num_logits = 1});
    return plan;
  }
  // Of one row, that go without the bucket now.
  int StepsWithout() {
    Sequence sequence;
    int count = 0;
    while (!cache_.BucketOf(PlanOf(1, &sequence)).has_value()) ++count;
    return count;
  }
  // Three of these: rows up to 4, one length of contexts.
  const GraphShape shape_ = {.max_rows = 4, .max_context = 512, .block_size = 512};
  std::vector<std::string> calls_;
  FakeStream stream_{&calls_};
  absl::Status recorded_;
  bool throws_ = false;
  GraphCache cache_{shape_, &stream_};
};

TEST_F(GraphCacheTest, TheFirstStepIsLaunchedTheSecondRecordedTheNextReplayed) {
  EXPECT_THAT(Run(1), ElementsAre("launch"));
  EXPECT_THAT(Run(2), ElementsAre("launch"));
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "graph 1"));
  EXPECT_THAT(Run(1), ElementsAre("graph 1"));
  EXPECT_THAT(Run(2), ElementsAre("begin", "launch_largest", "end", "graph 2"));
  EXPECT_THAT(Run(1), ElementsAre("graph 1"));
  EXPECT_EQ(cache_.counters().recordings_total, 2u);
  EXPECT_EQ(cache_.counters().launches_total, 4u);
  EXPECT_EQ(cache_.counters().failures_total, 0u);
}

TEST_F(GraphCacheTest, TheLeastRecentlyUsedGivesWay) {
  for (const int rows : {1, 1, 2, 2, 4, 4, 1}) Run(rows);
  EXPECT_THAT(Run(3), ElementsAre("launch"));  // in the place of 2
  EXPECT_THAT(Run(1), ElementsAre("graph 1"));
  EXPECT_THAT(Run(4), ElementsAre("graph 3"));
  EXPECT_THAT(Run(2), ElementsAre("launch"));
}

TEST_F(GraphCacheTest, WhatCannotBeRecordedIsLaunched) {
  Run(1);
  stream_.FailAt("begin");
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch"));
  Run(2);
  stream_.FailAt("end");
  EXPECT_THAT(Run(2), ElementsAre("begin", "launch_largest", "end", "launch"));
  EXPECT_EQ(cache_.counters().failures_total, 2u);
  EXPECT_EQ(cache_.counters().recordings_total, 0u);
}

// Then they are not filled up to the bucket's shape either.
TEST_F(GraphCacheTest, AfterEachFailureTwiceAsManyStepsGoWithoutABucket) {
  EXPECT_EQ(StepsWithout(), 0);
  Run(1);
  stream_.FailAt("begin");
  for (int steps = 2; steps <= 1024; steps *= 2) {
    EXPECT_THAT(Run(1), ElementsAre("begin", "launch"));
    EXPECT_EQ(StepsWithout(), steps);
  }
  Run(1);
  EXPECT_EQ(StepsWithout(), 1024);  // no more
  EXPECT_EQ(cache_.counters().failures_total, 11u);
}

TEST_F(GraphCacheTest, OnceAGraphIsLaunchedTheDistanceIsForgotten) {
  Run(1);
  stream_.FailAt("begin");
  Run(1);
  EXPECT_EQ(StepsWithout(), 2);
  stream_.FailAt("graph 1");
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "graph 1", "launch"));
  EXPECT_EQ(StepsWithout(), 4);
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "graph 2"));
  EXPECT_EQ(StepsWithout(), 0);
  stream_.FailAt("graph 2");
  EXPECT_THAT(Run(1), ElementsAre("graph 2", "launch"));
  EXPECT_EQ(StepsWithout(), 2);
}

TEST_F(GraphCacheTest, OtherBucketsKeepTheirGraphsMeanwhile) {
  Run(1);
  stream_.FailAt("begin");
  Run(1);
  stream_.FailAt("");
  Run(2);
  EXPECT_THAT(Run(2), ElementsAre("begin", "launch_largest", "end", "graph 1"));
  EXPECT_THAT(Run(1), ElementsAre("launch"));  // asked for before the failure was known
  EXPECT_EQ(StepsWithout(), 2);
}

TEST_F(GraphCacheTest, ARecordingInWhichAnOpFailsIsEndedAndThrownAway) {
  Run(1);
  recorded_ = absl::InternalError("told to");
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "launch"));
  EXPECT_EQ(cache_.counters().recordings_total, 0u);
}

TEST_F(GraphCacheTest, ARecordingWithoutHostMemoryIsEndedTooAndCostsNoStep) {
  Run(1);
  throws_ = true;
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "launch"));
  EXPECT_EQ(StepsWithout(), 2);
  throws_ = false;
  stream_.ThrowAt("begin");
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch"));
  EXPECT_EQ(StepsWithout(), 4);
  stream_.ThrowAt("end");
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "launch"));
}

TEST_F(GraphCacheTest, ABucketIsTheShapeThatAStepIsFilledUpTo) {
  Sequence sequence;
  EXPECT_EQ(cache_.BucketOf(PlanOf(3, &sequence)), Bucket(4));
}

}  // namespace
}  // namespace llm
