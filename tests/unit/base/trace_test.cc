// The recorder: its bounds, its errors, and files that a JSON parser reads.
#include "src/base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

namespace llm {
namespace {

using ::testing::HasSubstr;

std::string TracePath(const char* name) { return testing::TempDir() + "/inlay_" + name + ".json"; }

nlohmann::json ReadTrace(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

TraceSpan Span(const char* name, int64_t begin_ns, int64_t end_ns, uint64_t id = 0) {
  TraceSpan span;
  span.name = name;
  span.role = "engine";
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.id = id;
  return span;
}

TEST(TraceRecorderTest, WritesSpansOfThreadsWithTheirNanoseconds) {
  TraceRecorder recorder;
  const std::string path = TracePath("spans");
  ASSERT_TRUE(recorder.Start(path).ok());
  TraceSpan span = Span("step", 1'000'000'007, 1'000'002'050);
  span.args[0] = {"tokens", 12};
  recorder.Add({Span("admit", 1'000'000'000, 1'000'000'007), span});
  ASSERT_TRUE(recorder.Stop().ok());
  const nlohmann::json trace = ReadTrace(path);
  nlohmann::json step;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["name"] == "step") step = event;
  }
  EXPECT_EQ(step["ph"], "X");
  EXPECT_DOUBLE_EQ(step["ts"].get<double>(), 0.007);
  EXPECT_DOUBLE_EQ(step["dur"].get<double>(), 2.043);
  EXPECT_EQ(step["args"]["tokens"], 12);
}

TEST(TraceRecorderTest, OpsAreOnTheirWorkersTrackAndThoseBeyondTheRoomAreCounted) {
  TraceRecorder recorder(/*max_spans=*/8, /*max_ops=*/4);
  recorder.SetWorkers(2);
  recorder.AddOp(0, {"before", 1, 2});  // off: nothing
  const std::string path = TracePath("ops");
  ASSERT_TRUE(recorder.Start(path).ok());
  recorder.AddOp(0, {"attention", 10, 20});
  std::thread([&recorder] {
    for (int i = 0; i < 3; ++i) recorder.AddOp(1, {"head", 10, 30});
  }).join();
  ASSERT_TRUE(recorder.Stop().ok());
  recorder.AddOp(0, {"after", 1, 2});
  const nlohmann::json trace = ReadTrace(path);
  std::multiset<std::string> names;
  std::set<int64_t> threads;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") names.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] != "X") continue;
    names.insert(event["name"].get<std::string>());
    threads.insert(event["tid"].get<int64_t>());
  }
  EXPECT_EQ(names, (std::multiset<std::string>{"attention", "head", "head", "inlay", "worker 0",
                                               "worker 1"}));
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_EQ(trace["otherData"]["dropped_spans"], 1);
}

TEST(TraceRecorderTest, ARequestsFirstSpanEnclosesTheOthersInTheFile) {
  TraceRecorder recorder;
  const std::string path = TracePath("request");
  ASSERT_TRUE(recorder.Start(path).ok());
  recorder.Add({Span("request", 10, 30, 5), Span("queue", 10, 20, 5), Span("decode", 20, 30, 5)});
  ASSERT_TRUE(recorder.Stop().ok());
  std::string order;
  const nlohmann::json trace = ReadTrace(path);
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "request") continue;
    EXPECT_EQ(event["id"], 5);
    order += event["ph"].get<std::string>() + event["name"].get<std::string>() + " ";
  }
  EXPECT_EQ(order, "brequest bqueue equeue bdecode edecode erequest ");
}

TEST(TraceRecorderTest, CountsWhatItHasNoRoomFor) {
  TraceRecorder recorder(2);
  const std::string path = TracePath("bounded");
  ASSERT_TRUE(recorder.Start(path).ok());
  for (int i = 0; i < 5; ++i) recorder.Add({Span("step", i, i + 1)});
  ASSERT_TRUE(recorder.Stop().ok());
  const nlohmann::json trace = ReadTrace(path);
  EXPECT_EQ(trace["otherData"]["dropped_spans"], 3);
  EXPECT_EQ(trace["traceEvents"].size(), 2u + 2) << "two spans, a thread's and the process' name";
}

TEST(TraceRecorderTest, AnEmptyTraceIsStillAFile) {
  TraceRecorder recorder;
  const std::string path = TracePath("empty");
  recorder.Add({Span("before", 0, 1)});
  ASSERT_TRUE(recorder.Start(path).ok());
  ASSERT_TRUE(recorder.Stop().ok());
  recorder.Add({Span("after", 0, 1)});
  EXPECT_EQ(ReadTrace(path)["traceEvents"].size(), 1u);
}

TEST(TraceRecorderTest, NamesWhatCannotBe) {
  TraceRecorder recorder;
  EXPECT_EQ(recorder.Stop().code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status missing = recorder.Start("/no/such/folder/trace.json");
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/no/such/folder/trace.json"));
  EXPECT_FALSE(recorder.on());
  ASSERT_TRUE(recorder.Start("/dev/full").ok());
  EXPECT_EQ(recorder.Start("/dev/full").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(recorder.Stop().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace llm
