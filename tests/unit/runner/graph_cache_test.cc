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

  absl::Status BeginCapture() override { return Call("begin"); }
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndCapture() override {
    const absl::Status status = Call("end");
    if (!status.ok()) return status;
    return std::make_unique<NumberedGraph>(++num_graphs_);
  }
  absl::Status Launch(const DeviceGraph& graph) override {
    return Call("graph " + std::to_string(static_cast<const NumberedGraph&>(graph).number));
  }
  void FailAt(const std::string& call) { failing_ = call; }

 private:
  absl::Status Call(const std::string& call) {
    calls_.push_back(call);
    return call == failing_ ? absl::InternalError("told to") : absl::OkStatus();
  }

  std::vector<std::string>& calls_;
  std::string failing_;
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
  EXPECT_EQ(cache_.counters().captures_total, 2u);
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

TEST_F(GraphCacheTest, WhatCannotBeRecordedIsLaunchedFromThenOn) {
  Run(1);
  stream_.FailAt("begin");
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch"));
  EXPECT_THAT(Run(1), ElementsAre("launch"));
  Run(2);
  stream_.FailAt("end");
  EXPECT_THAT(Run(2), ElementsAre("begin", "launch_largest", "end", "launch"));
  EXPECT_THAT(Run(2), ElementsAre("launch"));
  EXPECT_EQ(cache_.counters().failures_total, 2u);
}

TEST_F(GraphCacheTest, ARecordingInWhichAnOpFailsIsEndedAndThrownAway) {
  Run(1);
  recorded_ = absl::InternalError("told to");
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "launch"));
  EXPECT_EQ(cache_.counters().captures_total, 0u);
}

TEST_F(GraphCacheTest, ARecordingWithoutMemoryIsEndedTooAndCostsNoStep) {
  Run(1);
  throws_ = true;
  EXPECT_THAT(Run(1), ElementsAre("begin", "launch_largest", "end", "launch"));
  EXPECT_THAT(Run(1), ElementsAre("launch"));
}

TEST_F(GraphCacheTest, AGraphThatCannotBeLaunchedIsGivenUp) {
  Run(1);
  Run(1);
  stream_.FailAt("graph 1");
  EXPECT_THAT(Run(1), ElementsAre("graph 1", "launch"));
  EXPECT_THAT(Run(1), ElementsAre("launch"));
}

TEST_F(GraphCacheTest, ABucketWithoutAGraphIsNotFilledUp) {
  Sequence sequence;
  StepPlan plan;
  plan.chunks.assign(3, {.sequence = &sequence, .begin = 0, .length = 1, .num_logits = 1});
  const auto bucket = cache_.BucketOf(plan);
  ASSERT_TRUE(bucket.has_value());
  EXPECT_EQ(*bucket, Bucket(4));
  Run(4);
  stream_.FailAt("begin");
  Run(4);
  EXPECT_FALSE(cache_.BucketOf(plan).has_value());
}

}  // namespace
}  // namespace llm
