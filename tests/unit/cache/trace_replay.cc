// Blocks of one token each, whose id is the block's: a trace tells which blocks are equal, not what
// is in them.
#include "tests/unit/cache/trace_replay.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <queue>
#include <tuple>

namespace llm {
namespace {

using Json = nlohmann::json;

std::vector<int32_t> RunsOf(const std::vector<int32_t>& ids) {
  std::vector<int32_t> runs;
  for (int32_t id : ids) {
    runs.push_back(id);
    runs.push_back(1);
  }
  return runs;
}

TraceRequest ReadSingle(const Json& line) {
  TraceRequest request;
  if (line.is_array()) {
    request.input_tokens = line[1];
    request.runs = line[3].get<std::vector<int32_t>>();
  } else {
    request.input_tokens = line["input_length"];
    request.runs = RunsOf(line["hash_ids"].get<std::vector<int32_t>>());
  }
  return request;
}

// Sub-agents' requests come where the sub-agent was started.
void ReadRequests(const Json& requests, TraceSession* session) {
  for (const Json& entry : requests) {
    if (entry.is_object()) {
      ReadRequests(entry["req"], session);
      continue;
    }
    TraceRequest request;
    request.input_tokens = entry[1];
    request.think_s = entry[3];
    request.api_s = entry[4];
    const std::string stop = entry[5];
    request.stop = stop.empty() ? '\0' : stop[0];
    request.runs = entry[6].get<std::vector<int32_t>>();
    session->push_back(std::move(request));
  }
}

class Replay {
 public:
  explicit Replay(const ReplayOptions& options) : options_(options), blocks_(Blocks(options)) {}

  void Serve(size_t session, const TraceRequest& request, bool last) {
    const std::vector<int32_t> ids = Ids(session, request);
    // What does not fit is as if it had never been cached.
    const int32_t size = std::min(static_cast<int32_t>(ids.size()), options_.capacity);
    std::vector<BlockTable> tables(1);
    const PrefixMatch match = blocks_.Match("", 0, ids, size);
    blocks_.TakeBlocks(match, &tables);
    PrefixNodeId node = blocks_.Enter(match.node, "", 0);
    while (static_cast<int32_t>(tables[0].size()) < size) {
      tables[0].push_back(blocks_.Allocate(0));
    }
    node = blocks_.Publish(node, ids, size, tables);
    blocks_.ReleaseAll(node, ids, size, session + 1, &tables);
    blocks_.Leave(node);
    total_ += request.input_tokens;
    hit_ +=
        std::min<int64_t>(int64_t{match.num_blocks} * options_.block_tokens, request.input_tokens);
    if (options_.hints) GiveHint(session + 1, request.stop, last);
  }

  double hit_rate() const { return static_cast<double>(hit_) / static_cast<double>(total_); }

 private:
  static BlockManagerOptions Blocks(const ReplayOptions& options) {
    BlockManagerOptions blocks;
    blocks.block_size = 1;
    blocks.groups = {KvGroupSpec()};
    blocks.num_blocks = {options.capacity};
    return blocks;
  }

  // Ids of different sessions are different blocks.
  static std::vector<int32_t> Ids(size_t session, const TraceRequest& request) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < request.runs.size(); i += 2) {
      for (int32_t j = 0; j < request.runs[i + 1]; ++j) {
        ids.push_back((static_cast<int32_t>(session) << 20) + request.runs[i] + j);
      }
    }
    return ids;
  }

  void GiveHint(uint64_t session_id, char stop, bool last) {
    if (last) {
      blocks_.Hint(session_id, SessionHint::kClosed);
    } else if (stop != 0) {
      blocks_.Hint(session_id, stop == 'T' ? SessionHint::kToolCall : SessionHint::kHuman);
    }
  }

  const ReplayOptions options_;
  BlockManager blocks_;
  int64_t total_ = 0;
  int64_t hit_ = 0;
};

}  // namespace

std::vector<TraceSession> ReadTrace(const std::string& path) {
  std::vector<TraceSession> sessions;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text);
    if (line.is_object() && line.contains("req")) {
      ReadRequests(line["req"], &sessions.emplace_back());
    } else {
      if (sessions.empty()) sessions.emplace_back();
      sessions[0].push_back(ReadSingle(line));
    }
  }
  return sessions;
}

double ReplayHitRate(const std::vector<TraceSession>& sessions, const ReplayOptions& options) {
  using Turn = std::tuple<double, size_t, size_t, size_t>;  // time, lane, session, request
  std::priority_queue<Turn, std::vector<Turn>, std::greater<Turn>> turns;
  size_t next = 0;
  const bool timed = options.order == LaneOrder::kTimed;
  for (size_t lane = 0; lane < static_cast<size_t>(options.lanes); ++lane, ++next) {
    if (next < sessions.size()) {
      turns.emplace(timed ? 3.0 * static_cast<double>(lane) : 0.0, lane, next, 0);
    }
  }
  Replay replay(options);
  while (!turns.empty()) {
    const auto [time, lane, session, index] = turns.top();
    turns.pop();
    const TraceRequest& request = sessions[session][index];
    const bool last = index + 1 == sessions[session].size();
    replay.Serve(session, request, last);
    double then = time + (timed ? std::max(request.api_s, 0.1) : 1.0);
    if (!last) {
      if (timed) then += std::min(sessions[session][index + 1].think_s, 300.0);
      turns.emplace(then, lane, session, index + 1);
    } else if (next < sessions.size()) {
      turns.emplace(then, lane, next++, 0);
    }
  }
  return replay.hit_rate();
}

}  // namespace llm
