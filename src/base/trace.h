// Records spans of time into bounded memory while on, and writes them as Chrome's trace format,
// which Perfetto reads too.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace llm {

struct TraceArg {
  const char* name = nullptr;  // null: no argument
  int64_t value = 0;
};

// Names are literals of ours: never freed, never escaped.
struct TraceSpan {
  const char* name = "";
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t id = 0;        // of the request whose track it is on; 0: on the track of `thread`
  const char* role = "";  // what the thread is called in the trace
  uint32_t thread = 0;    // Add sets it: the calling thread
  TraceArg args[3];
};

// One worker's share of an op.
struct OpSpan {
  const char* name = nullptr;  // a literal of ours
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// Safe from any thread. Off, it costs one relaxed load.
class TraceRecorder {
 public:
  static constexpr size_t kDefaultMaxSpans = size_t{1} << 17;  // about 12 MB: minutes of steps

  // Of all workers together; as much again, since a step has hundreds.
  static constexpr size_t kDefaultMaxOps = size_t{1} << 19;

  explicit TraceRecorder(size_t max_spans = kDefaultMaxSpans, size_t max_ops = kDefaultMaxOps)
      : max_spans_(max_spans), max_ops_(max_ops) {}
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // Creates the file, or empties it. FAILED_PRECONDITION: on already; NOT_FOUND, PERMISSION_DENIED:
  // the path; RESOURCE_EXHAUSTED: memory for the spans.
  absl::Status Start(const std::string& path);
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Spans of a request come in one call, the enclosing one first. Allocates nothing. When the room
  // is used up further spans are counted and dropped. Nothing when off.
  void Add(absl::Span<const TraceSpan> spans);
  // Before the first Start: workers [0, num_workers) will add ops. Worker 0 is the engine's thread.
  void SetWorkers(int num_workers);
  // One caller a worker at a time. Allocates nothing; beyond the room ops are counted and dropped.
  void AddOp(int worker, const OpSpan& op);
  // Writes the file. FAILED_PRECONDITION: off; DATA_LOSS: the file is not complete.
  absl::Status Stop();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  // A worker's own, so that workers do not wait for each other; its mutex is for Start and Stop.
  struct Ops {
    std::mutex mutex;
    std::vector<OpSpan> room;  // written to in advance: no page of it is new to AddOp
    size_t num_spans = 0;      // of room
    uint32_t thread = 0;       // the first that added one
    uint64_t num_dropped = 0;
    bool on = false;
  };
  // What a trace holds when it is written.
  struct Contents {
    std::vector<TraceSpan> spans;
    std::vector<std::vector<OpSpan>> ops;  // [workers]
    std::vector<uint32_t> op_threads;      // [workers]
    uint64_t num_dropped = 0;
  };
  static bool Write(std::FILE* file, const Contents& contents);
  void TakeOps(Contents* contents);

  const size_t max_spans_;
  const size_t max_ops_;
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<TraceSpan> spans_;
  uint64_t num_dropped_ = 0;
  std::vector<std::unique_ptr<Ops>> ops_;  // [workers], fixed
};

}  // namespace llm
