// Reads a trace file with a JSON parser and checks that its spans nest.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace llm {

struct CheckedTrace {
  struct Span {
    std::string name;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    nlohmann::json args;
  };
  std::map<int64_t, std::vector<Span>> threads;    // by tid, in the order of the file
  std::map<uint64_t, std::vector<Span>> requests;  // by id, in the order in which they begin
  std::map<int64_t, std::string> thread_names;

  size_t Count(const std::string& name) const {
    size_t count = 0;
    for (const auto& [tid, spans] : threads) {
      for (const Span& span : spans) count += span.name == name ? 1 : 0;
    }
    return count;
  }
};

inline int64_t TraceNs(const nlohmann::json& micros) {
  return std::llround(micros.get<double>() * 1000);
}

// Of one thread: two spans are apart, or one holds the other.
inline void ExpectNested(const std::vector<CheckedTrace::Span>& spans) {
  for (size_t i = 0; i < spans.size(); ++i) {
    for (size_t j = i + 1; j < spans.size(); ++j) {
      const CheckedTrace::Span& a = spans[i];
      const CheckedTrace::Span& b = spans[j];
      const bool apart = a.end_ns <= b.begin_ns || b.end_ns <= a.begin_ns;
      const bool a_holds = a.begin_ns <= b.begin_ns && b.end_ns <= a.end_ns;
      const bool b_holds = b.begin_ns <= a.begin_ns && a.end_ns <= b.end_ns;
      EXPECT_TRUE(apart || a_holds || b_holds) << a.name << " and " << b.name << " overlap";
    }
  }
}

inline void AddRequestEvent(const nlohmann::json& event,
                            std::map<uint64_t, std::vector<size_t>>* open, CheckedTrace* trace) {
  const uint64_t id = event["id"].get<uint64_t>();
  std::vector<CheckedTrace::Span>& spans = trace->requests[id];
  std::vector<size_t>& stack = (*open)[id];
  if (event["ph"] == "b") {
    stack.push_back(spans.size());
    spans.push_back({event["name"], TraceNs(event["ts"]), 0, event["args"]});
    return;
  }
  ASSERT_FALSE(stack.empty()) << "an end without a begin";
  CheckedTrace::Span& span = spans[stack.back()];
  EXPECT_EQ(event["name"], span.name) << "the innermost span ends first";
  span.end_ns = TraceNs(event["ts"]);
  EXPECT_GE(span.end_ns, span.begin_ns);
  stack.pop_back();
}

inline CheckedTrace ReadCheckedTrace(const std::string& path) {
  CheckedTrace trace;
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path << " is not JSON";
  if (json.is_discarded()) return trace;
  EXPECT_EQ(json["otherData"]["dropped_spans"], 0);
  std::map<uint64_t, std::vector<size_t>> open;
  for (const nlohmann::json& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    EXPECT_EQ(event["pid"], 1);
    if (phase == "X") {
      const int64_t begin_ns = TraceNs(event["ts"]);
      trace.threads[event["tid"]].push_back(
          {event["name"], begin_ns, begin_ns + TraceNs(event["dur"]), event["args"]});
    } else if (phase == "M") {
      if (event["name"] == "thread_name") trace.thread_names[event["tid"]] = event["args"]["name"];
    } else {
      AddRequestEvent(event, &open, &trace);
    }
  }
  for (const auto& [tid, spans] : trace.threads) ExpectNested(spans);
  for (const auto& [id, stack] : open) EXPECT_TRUE(stack.empty()) << "request " << id;
  return trace;
}

}  // namespace llm
