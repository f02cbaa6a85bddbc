// Prefix-cache hit rates over recorded traces, held to those of an exact LRU list that was written
// elsewhere (golden_prefix_cache.json): as good without hints, better with them.
//
// A row is one capacity. INLAY_TRACE_ROWS=all replays every row instead of one file and one number
// of lanes for each kind.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/unit/cache/trace_replay.h"

namespace llm {
namespace {

using Json = nlohmann::json;
constexpr const char* kAgents = "cc_agentic_rle_178.jsonl";

class TraceHitRateTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(folder_ + "golden_prefix_cache.json");
    if (!file) GTEST_SKIP() << "no traces in " << folder_;
    golden_ = Json::parse(file);
    const char* rows = std::getenv("INLAY_TRACE_ROWS");
    all_ = rows != nullptr && std::string(rows) == "all";
  }

  std::vector<TraceSession> Read(const std::string& name) { return ReadTrace(folder_ + name); }

  // Each capacity of a golden row: our rate is at least `share` of the golden one.
  static void CheckRow(const std::string& name, const std::vector<TraceSession>& sessions,
                       ReplayOptions options, const Json& row) {
    for (const auto& [key, value] : row.items()) {
      if (!value.is_number_float() || key == "0") continue;
      options.capacity = std::stoi(key);
      const double golden = value;
      const double lru = ReplayHitRate(sessions, options);
      std::printf("%s lanes %d blocks %d: golden %.4f lru %.4f (%.3f)", name.c_str(), options.lanes,
                  options.capacity, golden, lru, lru / golden);
      EXPECT_GE(lru, 0.95 * golden) << name << " " << key;
      if (options.order == LaneOrder::kTimed) CheckHints(sessions, options, golden);
      std::printf("\n");
    }
  }

  // Nothing beats a cache that never evicts; the golden rates have four decimals.
  static void CheckHints(const std::vector<TraceSession>& sessions, ReplayOptions options,
                         double golden_lru) {
    constexpr double kInfinite = 0.9483;
    options.hints = true;
    const double hinted = ReplayHitRate(sessions, options);
    std::printf(", with hints %.4f (%.3f)", hinted, hinted / golden_lru);
    if (golden_lru < kInfinite) {
      EXPECT_GT(hinted, golden_lru + 0.00005) << options.lanes << " " << options.capacity;
    } else {
      EXPECT_GT(hinted, golden_lru - 0.00005) << options.lanes << " " << options.capacity;
    }
  }

  const std::string folder_ = INLAY_SHARED_DATA "/../traces/";
  Json golden_;
  bool all_ = false;
};

TEST_F(TraceHitRateTest, FollowsLruOverSingleRequests) {
  for (const auto& [name, row] : golden_["lru_open_trace_order"].items()) {
    if (!all_ && name != "mooncake_synthetic_1432.jsonl") continue;
    ReplayOptions options;
    options.block_tokens = row["block"];
    CheckRow(name, Read(name), options, row);
  }
}

// Of the round-robin rows only that of one lane: the golden file does not tell which session goes
// to which lane, and the rates hang on it (the timed rows, where the clock decides, agree to the
// last digit for any number of lanes).
TEST_F(TraceHitRateTest, FollowsLruOverAgentsOneAfterAnother) {
  const std::vector<TraceSession> sessions = Read(kAgents);
  const Json& golden = golden_["cc_agentic_rle_178_round_robin_lanes_lru"];
  ReplayOptions options;
  options.block_tokens = golden["block"];
  CheckRow("round robin", sessions, options, golden["1"]);
}

TEST_F(TraceHitRateTest, FollowsLruOverTimedAgentsAndBeatsItWithHints) {
  const std::vector<TraceSession> sessions = Read(kAgents);
  const Json& golden = golden_["cc_agentic_rle_178_timed_lanes"];
  ReplayOptions options;
  options.block_tokens = golden["block"];
  options.order = LaneOrder::kTimed;
  for (const auto& [lanes, row] : golden["lru"].items()) {
    if (!all_ && lanes != "8") continue;
    options.lanes = std::stoi(lanes);
    CheckRow("timed", sessions, options, row);
  }
}

}  // namespace
}  // namespace llm
